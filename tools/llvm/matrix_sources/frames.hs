-- Type classes, local functions, laziness, folds, exceptions.
module Main (main) where

import qualified Data.Map.Strict as Map
import Control.Exception (SomeException, evaluate, try)
import System.Environment (getArgs)

class Area a where
  area :: a -> Int

newtype Square = Square Int
data Pair a = Pair a a

instance Area Square where
  area (Square side) = side * side

instance Area a => Area (Pair a) where
  area (Pair one other) = area one + area other

clamped :: Ord a => a -> a -> a -> a
clamped low high value
  | value < low = low
  | value > high = high
  | otherwise = value
{-# NOINLINE clamped #-}

total :: Int -> Int
total n = go 0 n
  where
    go acc 0 = acc
    go acc k = go (acc + weigh k) (k - 1)
    weigh k = if even k then clamped 1 50 k else k `mod` 7

count :: [Int] -> Map.Map Int Int
count = foldr (\x -> Map.insertWith (+) (x `mod` 5) x) Map.empty
{-# NOINLINE count #-}

main :: IO ()
main = do
  arguments <- getArgs
  let n = length arguments + 20
  print (area (Pair (Square n) (Square 2)))
  result <- try (evaluate (total n `div` (n - 20))) :: IO (Either SomeException Int)
  either (const (putStrLn "divided by zero")) print result
  print (Map.toList (count [1 .. n]))
