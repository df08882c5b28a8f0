"""The comparison of two chains: it finds their last common block exactly, with a bounded number of questions."""

import asyncio
import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from indexer.sync.node_watch import POINTS, Compared, compare
from shared.splits import ChainBlock, judge

Chain = Sequence[ChainBlock]


class Tree:
    """Two chains of a tree: `ours` is indexed from `first` on, and `theirs` shares the blocks below `shared`."""

    def __init__(self, shared: int, ours: int, theirs: int, first: int = 0) -> None:
        trunk = [block(number, "a") for number in range(shared)]
        self.ours = [*trunk, *(block(shared + number, "b") for number in range(ours))][first:]
        self.theirs = [*trunk, *(block(shared + number, "c") for number in range(theirs))]
        self.first, self.questions = first, 0

    async def compared(self) -> Compared:
        by_number, has = {each.block_no: each for each in self.ours}, set(self.theirs)

        async def blocks(numbers: Sequence[int]) -> list[ChainBlock]:
            return [by_number[number] for number in sorted(numbers, reverse=True) if number in by_number]

        async def ask(offered: Sequence[ChainBlock]) -> tuple[ChainBlock | None, ChainBlock | None]:
            self.questions += 1
            assert len(offered) <= POINTS
            return next((each for each in offered if each in has), None), self.theirs[-1] if self.theirs else None

        return await compare(self.first, self.ours[-1].block_no, blocks, ask)


def block(number: int, branch: str) -> ChainBlock:
    return ChainBlock(number * 20 + ord(branch[0]), number, f"{branch}{number}")


@given(st.integers(0, 1_500), st.integers(0, 800), st.integers(0, 800), st.integers(0, 100))
def test_the_last_common_block_is_found_with_few_questions(shared: int, ours: int, theirs: int, first: int) -> None:
    if shared + ours <= first:
        ours = first - shared + 1
    tree = Tree(shared, ours, theirs, first)
    found = asyncio.run(tree.compared())
    common = [each for each in tree.ours if each in set(tree.theirs)]
    assert found == Compared(tree.ours[-1], tree.theirs[-1] if tree.theirs else None, common[-1] if common else None)
    assert tree.questions <= 2 + math.ceil(math.log(max(shared + ours, 2), POINTS))


def test_a_node_that_is_merely_behind_costs_one_question() -> None:
    tree = Tree(shared=90_000, ours=10_000, theirs=0)
    found = asyncio.run(tree.compared())
    assert (found.common, tree.questions) == (tree.theirs[-1], 1)


@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.integers(1, 20))
def test_only_two_long_branches_are_a_split(shared: int, ours: int, theirs: int, split_blocks: int) -> None:
    tree = Tree(shared + 1, ours, theirs)
    common = tree.ours[shared]
    word = judge(tree.ours[-1], tree.theirs[-1], common, split_blocks)
    assert (word == "diverged") == (ours > split_blocks and theirs > split_blocks)
    if not ours and theirs:
        assert word in ("in_step", "ahead")
    if ours and not theirs:
        assert word in ("in_step", "behind")
    assert (word == "in_step") == (max(ours, theirs) <= split_blocks)


def test_a_node_without_blocks_is_behind_and_one_of_another_chain_has_diverged() -> None:
    assert judge(block(50, "a"), None, None, 10) == "behind"
    assert judge(block(50, "a"), block(60, "b"), None, 10) == "diverged"
