"""Paddle orders the inputs of while and conditional_block by iterating over Python sets. A program that makes goldens
calls fix_hash_seed() before it imports Paddle, so that programs come out byte-identical."""
import os
import sys


def fix_hash_seed():
    """Starts this process anew unless its hash seed is 0: Python reads it at start-up only."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable] + sys.argv)
