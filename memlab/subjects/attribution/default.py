"""The calibration of the default policy: experiments/attribution.py, the first half of its conversations."""

from memlab.subjects.attribution.confidence import Calibration

__all__ = ["SHIPPED"]

_CURVE = (
    (0, 0.0002),
    (0.0013, 0.0002),
    (0.0025, 0.0046),
    (0.0042, 0.0046),
    (0.007, 0.0168),
    (0.0106, 0.0174),
    (0.0162, 0.0174),
    (0.0251, 0.043),
    (0.0361, 0.05),
    (0.05, 0.05),
    (0.0521, 0.1093),
    (0.0839, 0.1322),
    (0.1, 0.1322),
    (0.15, 0.2727),
    (0.2, 0.506),
    (0.3, 0.506),
    (0.35, 0.7241),
    (0.4, 0.7241),
    (0.45, 0.8095),
    (0.6, 0.8095),
    (0.65, 0.8182),
    (0.8, 0.8182),
    (0.85, 0.963),
    (0.9, 0.963),
    (0.95, 0.9998),
    (1, 0.9998),
)
"""Of answers of which a third were as they are, a third paraphrased and a third "I don't know"."""

SHIPPED = Calibration(
    policy="3cbd74c24cbc383c9f85a878f552b96a7f6926477506f6bbbd8117f6f6c2ae58",
    method="isotonic",
    pairs=4104,
    credit=tuple(credit for credit, _ in _CURVE),
    useful=tuple(useful for _, useful in _CURVE),
    brier=0.0288,
    before=0.0322,
)
