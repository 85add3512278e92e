! Contained and module procedures, an entry, and a block of common code.
module numbers
  implicit none
  integer :: total = 0
contains
  recursive function factorial(n) result(r)
    integer, intent(in) :: n
    integer :: r
    if (n <= 1) then
      r = 1
    else
      r = n * factorial(n - 1)
    end if
  end function

  subroutine outer(n)
    integer, intent(in) :: n
    integer :: i
    do i = 1, n
      call inner(i)
    end do
  contains
    subroutine inner(k)
      integer, intent(in) :: k
      total = total + k * n + small(k)
    end subroutine
    integer function small(k)
      integer, intent(in) :: k
      small = k + n
    end function
  end subroutine
end module

subroutine first(x)
  use numbers
  integer :: x
  x = x + factorial(3)
  return
  entry later(x)
  x = x - factorial(4)
end subroutine

program main
  use numbers
  integer :: x
  x = command_argument_count()
  call outer(x)
  call first(x)
  call later(x)
  print *, total, x, contained(x)
contains
  integer function contained(y)
    integer :: y
    contained = y * total
  end function
end program
