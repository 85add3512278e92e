"""Mapping files of ProGuard and R8."""

R8 = """\
# compiler: R8
# compiler_version: 8.5.10
# {"id":"com.android.tools.r8.mapping","version":"2.2"}
com.acme.Codec -> a.a.a:
# {"id":"sourceFile","fileName":"Codec.kt"}
    int counter -> a
    com.acme.Codec$State state -> b
    1:1:void <init>():12:12 -> <init>
    1:3:byte[] encode(java.lang.String,int):20:22 -> a
    4:4:int com.acme.util.Checks.range(int,int,int):7:7 -> a
    4:4:byte[] encode(java.lang.String,int):23 -> a
    5:5:int com.acme.util.Math.clamp(int):40:40 -> a
    5:5:int com.acme.util.Checks.range(int,int,int):9 -> a
    5:5:byte[] encode(java.lang.String,int):24 -> a
    6:20:byte[] encode(java.lang.String,int):25:25 -> a
    21:24:void close():60:61 -> a
      # {"id":"com.android.tools.r8.residualsignature","signature":"()V"}
    int size() -> c
    long size(com.acme.Codec) -> c
    int hash(long) -> d
    1:2:boolean isReady():80:81 -> e
    1:2:boolean isDone():90:91 -> f
    1:1:void lambda$run$0():33:33 -> g
    1:1:void com.acme.Codec$$ExternalSyntheticLambda0.run():0 -> g
      # {"id":"com.android.tools.r8.synthesized"}
    2:2:void lambda$run$1():35:35 -> g
    2:2:void com.acme.Codec$$ExternalSyntheticLambda0.run():0 -> g
    0:65535:void outlined():0:0 -> h
      # {"id":"com.android.tools.r8.outlineCallsite","positions":{"1":4,"2":5},"outline":"La/a/b;a()V"}
com.acme.util.Checks -> a.a.b:
# {'id':'sourceFile','fileName':'Checks.java'}
    1:1:void check(boolean):3:3 -> a
    2:2:void check(boolean):4:4 -> a
com.acme.util.Math -> com.acme.util.Math:
# {"id":"sourceFile","fileName":"Math.kt"}
com.acme.Main -> com.acme.Main:
    void main(java.lang.String[]) -> main
"""
