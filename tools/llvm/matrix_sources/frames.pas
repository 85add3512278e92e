{ Nested procedures, classes, overloading, units' initialization, exceptions, generics. }
program frames;

{$mode objfpc}{$H+}

uses
  SysUtils;

type
  TShape = class
    Side: Integer;
    constructor Create(ASide: Integer);
    function Area: Integer; virtual;
  end;

  TCube = class(TShape)
    function Area: Integer; override;
  end;

  generic TPair<T> = class
    First, Second: T;
    function Sum: T;
  end;

  TIntegers = specialize TPair<Integer>;
  TReals = specialize TPair<Double>;

constructor TShape.Create(ASide: Integer);
begin
  Side := ASide;
end;

function TShape.Area: Integer;
begin
  Result := Side * Side;
end;

function TCube.Area: Integer;
begin
  Result := 6 * inherited Area;
end;

function TPair.Sum: T;
begin
  Result := First + Second;
end;

function Clamped(Value, Low, High: Integer): Integer; inline;
begin
  if Value < Low then
    Result := Low
  else if Value > High then
    Result := High
  else
    Result := Value;
end;

function Clamped(Value: Double): Double; overload;
begin
  Result := Value / 2;
end;

function Total(X: Integer): Integer;
var
  Sum: Integer;

  procedure Add(Y: Integer);
  begin
    Sum := Sum + Clamped(Y, 2, 50);
  end;

var
  I: Integer;
begin
  Sum := X;
  for I := 1 to X do
    Add(I);
  try
    if Sum > 10000 then
      raise Exception.Create('too large');
  except
    on E: Exception do
      Sum := -1;
  end;
  Result := Sum;
end;

var
  Cube: TShape;
  Whole: TIntegers;
  Real: TReals;
begin
  Cube := TCube.Create(ParamCount + 3);
  Whole := TIntegers.Create;
  Whole.First := ParamCount;
  Real := TReals.Create;
  Real.First := Clamped(1.5);
  WriteLn(Cube.Area, ' ', Total(ParamCount + 10), ' ', Whole.Sum, ' ', Real.Sum);
end.
