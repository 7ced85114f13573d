"""Bubbles never overlap, and what is linked lies side by side."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from memlab.subjects.structure._packing import packed


@examples(60)
@given(st.lists(st.floats(0.05, 1), max_size=14), st.floats(0.0, 0.3), st.integers(0, 99))
def test_none_lies_over_another(radii, gap, seed):
    sizes = np.array(radii)
    links = np.random.default_rng(seed).random((len(radii), len(radii))).round()
    centres = packed(sizes, links + links.T, gap=gap)
    assert centres.shape == (len(radii), 2)
    for one in range(len(radii)):
        for other in range(one):
            apart = np.linalg.norm(centres[one] - centres[other])
            assert apart >= sizes[one] + sizes[other] + gap - 1e-6


def test_what_is_linked_is_nearer():
    radii = np.array([1.0, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6])
    links = np.zeros((7, 7))
    links[6, 1] = links[1, 6] = 1.0
    linked = packed(radii, links, gap=0.1)
    assert np.linalg.norm(linked[6] - linked[1]) < np.linalg.norm(linked[6] - linked[2])
    assert np.array_equal(linked, packed(radii, links, gap=0.1))
