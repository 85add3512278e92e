"""Which binary answers for a mapping, and the vaddr of each address in it. Knows no formats."""
