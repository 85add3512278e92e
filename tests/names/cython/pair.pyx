# The second function has the number that is the length of its first word.
def an(x): return x + 1
def to_be(x): return x + 1
async def gen(x): return await x
def put_2d(x): return x + 1
class A:
    async def write(self, x): return await x
    def both(self, x): return x + 1
    def write_all(self, x): return x + 1
