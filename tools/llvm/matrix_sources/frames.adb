--  Nested procedures, packages, generics, overloading, tasks, exceptions.
with Ada.Command_Line;
with Ada.Text_IO;

procedure Frames is

   package Shapes is
      type Shape is tagged record
         Side : Integer;
      end record;
      function Area (Self : Shape) return Integer;
      function "+" (Left, Right : Shape'Class) return Integer;
      type Cube is new Shape with null record;
      overriding function Area (Self : Cube) return Integer;
   end Shapes;

   package body Shapes is
      function Square (X : Integer) return Integer is (X * X);
      pragma Inline (Square);

      function Area (Self : Shape) return Integer is
      begin
         return Square (Self.Side);
      end Area;

      overriding function Area (Self : Cube) return Integer is
      begin
         return 6 * Area (Shape (Self)) + Square (Self.Side + 1);
      end Area;

      function "+" (Left, Right : Shape'Class) return Integer is (Left.Area + Right.Area);
   end Shapes;

   generic
      type Element is range <>;
   function Clamped (Value, Low, High : Element) return Element;

   function Clamped (Value, Low, High : Element) return Element is
   begin
      return (if Value < Low then Low elsif Value > High then High else Value);
   end Clamped;

   type Small is range 0 .. 1000;
   function Clamp_Small is new Clamped (Small);
   function Clamp_Integer is new Clamped (Integer);

   task type Worker (Count : Integer) is
      entry Go (X : in out Integer);
   end Worker;

   task body Worker is
   begin
      accept Go (X : in out Integer) do
         for I in 1 .. Count loop
            X := X + Clamp_Integer (I, 2, 5);
         end loop;
      end Go;
   end Worker;

   function Total (X : Integer) return Integer is
      Sum : Integer := X;
      procedure Add (Y : Integer) is
      begin
         Sum := Sum + Integer (Clamp_Small (Small (Y), 1, 50));
      end Add;
   begin
      for I in 1 .. X loop
         Add (I);
      end loop;
      if Sum > 10_000 then
         raise Constraint_Error with "too large";
      end if;
      return Sum;
   exception
      when Constraint_Error =>
         return -1;
   end Total;

   use Shapes;
   N    : Integer := Ada.Command_Line.Argument_Count + 3;
   Both : constant Shape'Class := Cube'(Side => N);
   Sum  : constant Integer := Shape'(Side => N) + Both;
   One  : Worker (N);
begin
   One.Go (N);
   Ada.Text_IO.Put_Line (Integer'Image (Both.Area + Sum + Total (N)));
end Frames;
