(* Closures, functors, currying, exceptions, mutual recursion, loops. *)
module type Shape = sig
  type t
  val area : t -> int
end

module Square = struct
  type t = int
  let area side = side * side [@@inline never]
end

module Twice (S : Shape) = struct
  let area x = 2 * S.area x [@@inline never]
end

module Double = Twice (Square)

exception Too_large of int

let[@inline] triple x = x * 3

let rec even n = n = 0 || odd (n - 1)
and odd n = n <> 0 && even (n - 1)

let counted limit =
  let seen = Hashtbl.create 7 in
  let add x =
    let old = try Hashtbl.find seen (x mod 5) with Not_found -> 0 in
    Hashtbl.replace seen (x mod 5) (old + triple x)
  in
  for i = 1 to limit do
    if even i then add i else add (triple i)
  done;
  Hashtbl.fold (fun _ value total -> total + value) seen 0

let checked x =
  try if x > 1000 then raise (Too_large x) else counted x
  with Too_large y -> -y

let () =
  let n = Array.length Sys.argv + 10 in
  let scaled = List.map (fun x -> x * n) [ 1; 2; 3 ] in
  Printf.printf "%d %d %d\n" (Double.area n) (checked n) (List.fold_left ( + ) 0 scaled)
