"""Estimators beside the core of ``memlab.evaluate``: arrays in, a value with its interval out.

Of single choices: n recalls, each of which shows one of m items, drawn by known probabilities. Of rankings: n recalls
that show k items each. A target policy may be stochastic: it is given by its probabilities. Every interval is made by
the rule of ``memlab.evaluate``: the jackknife over ``cluster``, which names what belongs together (the i-th recall that
of ``cluster[i]``; each recall by itself unless given).

With ``w`` the probability under the target over that under the logging policy, r the reward and q the expected one:

    ips                  mean of w r                                         Horvitz & Thompson 1952
    snips                sum of w r / sum of w                               Swaminathan & Joachims 2015
    clipped_ips          mean of min(w, cap) r, and what that can hide       Ionides 2008; Bottou et al. 2013
    direct_method        mean of q under the target, q a ridge regression    Dudik, Langford & Li 2011
    doubly_robust        mean of q under the target + w (r - q)              Dudik, Langford & Li 2011
    switch_dr            the same, without w above a cap                     Wang, Agarwal & Dudik 2017
    shrunk_dr            the same, with w shrunk                             Su, Dimakopoulou et al. 2020
    slate_ips            mean of w r, w of whole slates                      Swaminathan et al. 2017
    pseudo_inverse       rewards that add up over places                     Swaminathan et al. 2017
    independent_ips      w of each item and place by itself                  Li et al. 2018
    interaction_ips      w of an item and all above it                       McInerney et al. 2020
    cascade_dr           the same with expected rewards                      Kiyohara et al. 2022
    position_based       w of an item's chance of being examined             Li et al. 2018
    click_ips            w of an item's chance of being clicked              Tanaka et al. 2026

What the log could not have shown is in none of them: where the target's probability is above 0 and the logging
policy's is 0, they are wrong by an unknown amount. ``memlab.evaluate`` bounds it.

>>> action, reward, propensity = [0, 1, 0, 1], [1.0, 0.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]
>>> target = [[1.0, 0.0]] * 4                                                     # always shows the first
>>> ips(action, reward, propensity, target).value
1.0
"""

from memlab.evaluation.estimators._choices import (
    ClippedEstimate,
    clipped_ips,
    direct_method,
    doubly_robust,
    expected_rewards,
    ips,
    shrunk_dr,
    snips,
    switch_dr,
)
from memlab.evaluation.estimators._rankings import (
    cascade_dr,
    click_ips,
    independent_ips,
    interaction_ips,
    position_based,
    pseudo_inverse,
    slate_ips,
    slate_weights,
)

__all__ = [
    "ClippedEstimate",
    "cascade_dr",
    "click_ips",
    "clipped_ips",
    "direct_method",
    "doubly_robust",
    "expected_rewards",
    "independent_ips",
    "interaction_ips",
    "ips",
    "position_based",
    "pseudo_inverse",
    "shrunk_dr",
    "slate_ips",
    "slate_weights",
    "snips",
    "switch_dr",
]
