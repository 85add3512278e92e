# cython: language_level=3
cimport cython
ctypedef fused num:
    int
    double
def plain(x): return x + 1
def _under(x): return x
def __dunder(x): return x
def f_1a(x): return x
cdef int cfunc(int a): return a * 2
cpdef int cpfunc(int a): return cfunc(a)
def fus(num x): return x + x
cdef num cfus(num x): return x * x
cpdef num cpfus(num x): return cfus(x)
def outer(n):
    def inner(k):
        def deep(z): return z + k + n
        return deep
    return inner(n)
def gen(n):
    for i in range(n): yield i
def genx(n): return sum(i * n for i in range(n))
lam = lambda x: x * 3
def haslam(n): return map(lambda q: q + n, range(n))
async def co(x): return await x
async def agen(x):
    yield x
class Py:
    def meth(self): return 1
    @staticmethod
    def st(a): return a
    @classmethod
    def cl(cls): return cls
    @property
    def prop(self): return 3
    def g(self):
        yield 2
    class Nested:
        def deepmeth(self): return 1
    def _2x(self): return 1
cdef class Ext:
    cdef public int val
    cdef readonly object ro
    cdef int _priv
    def __init__(self, x): self.val = x
    def __cinit__(self, x): pass
    def __dealloc__(self): pass
    def __getitem__(self, i): return i
    def __add__(self, o): return 1
    def __len__(self): return 1
    def __iter__(self): return self
    def __next__(self): raise StopIteration
    def __richcmp__(self, o, int op): return True
    def __getattr__(self, n): return n
    def __setattr__(self, n, v): pass
    def __call__(self): return 1
    def meth(self, a): return a
    @staticmethod
    def st(a): return a
    @property
    def prop(self): return self._priv
    @prop.setter
    def prop(self, v): self._priv = v
    @prop.deleter
    def prop(self): pass
    cdef int cm(self, int a): return a
    cpdef int cpm(self, int a): return a
    def _3d(self): return 3
    def fm(self, num x): return x
    def gen(self):
        yield self.val
    def clos(self):
        def inner(): return self
        return inner
    def __reduce__(self): return 1
cdef class Sub(Ext):
    cdef int cm(self, int a): return a + 1
    cpdef int cpm(self, int a): return a + 1
    property old:
        def __get__(self): return 1
        def __set__(self, v): pass
cdef class _1(object):
    def m(self): return 1
class _2b:
    def _3c(self): return 1
def _4foo(x):
    def _5bar(y): return x
    return _5bar
@cython.binding(False)
def nobind(x): return x
def plain2(int a, b=3, *args, **kw): return a
def dup(a): return 1
def dup(a): return 2
cdef inline int inl(int a): return a
cdef api int apif(int a): return a
cdef public int pubf(int a): return a
cdef class _Writer:
    async def write(self): return self
    def twice(self, x): return x + 1
    def write_all(self, x): return x + 2
def make_it(x):
    def all(y): return x + y
    return all
def label_2d(x): return x + 1
