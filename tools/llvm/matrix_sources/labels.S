/* Functions with and without type and size, local labels in them, data between them. */
        .text
        .globl  assembled
        .type   assembled, %function
assembled:
        nop
        nop
inside_label:
        nop
        nop
        .size   assembled, .-assembled

        .balign 64
        .globl  untyped
untyped:
        nop
        nop
second_untyped:
        nop
        nop

        .balign 32
        .type   sizeless, %function
sizeless:
        nop
        nop
        nop
        nop

        .section .text.far, "ax", %progbits
        .globl  far_away
        .type   far_away, %function
far_away:
        nop
        nop
        .size   far_away, .-far_away
        nop
        nop
#ifdef __ELF__
        .section .note.GNU-stack, "", %progbits
#endif
