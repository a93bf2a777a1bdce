"""What the paper prints [XJL10]: accuracy in percent and its standard deviation."""

from __future__ import annotations

__all__ = ["SELECTED_L1_IONOSPHERE", "TABLE2", "TABLE3", "WPBC"]

#: data set -> method -> (mean, standard deviation); 20 % of the data to train on
TABLE2 = {
    "ionosphere": {"L1-MKL": (87.1, 2.0), "L2-MKL": (89.0, 2.1), "SMKL": (89.3, 2.6)},
    "breast": {"L1-MKL": (95.4, 0.6), "L2-MKL": (95.8, 0.7), "SMKL": (96.3, 0.6)},
    "sonar": {"L1-MKL": (73.6, 4.2), "L2-MKL": (75.6, 4.6), "SMKL": (77.2, 4.3)},
    "pima": {"L1-MKL": (69.0, 2.2), "L2-MKL": (70.0, 1.6), "SMKL": (71.6, 1.2)},
    "wdbc": {"L1-MKL": (93.4, 1.2), "L2-MKL": (94.1, 1.2), "SMKL": (94.5, 1.1)},
    "heart": {"L1-MKL": (77.3, 3.5), "L2-MKL": (78.7, 2.6), "SMKL": (78.9, 2.5)},
}
WPBC = (
    "wpbc (198 x 33) is not at hand; the paper has 72.6 ± 3.2, 75.0 ± 2.9 and 75.1 ± 2.7 for L1, L2 and SMKL"
)

#: 10 % of the data to train on; the paper has no L2-MKL here
TABLE3 = {
    "text1": {"L1-MKL": (72.7, 2.0), "SMKL": (77.3, 1.6)},
    "text2": {"L1-MKL": (79.5, 1.6), "SMKL": (81.0, 1.8)},
    "text3": {"L1-MKL": (78.1, 2.0), "SMKL": (81.5, 2.2)},
    "text4": {"L1-MKL": (85.1, 2.7), "SMKL": (87.6, 2.3)},
    "text5": {"L1-MKL": (98.0, 1.2), "SMKL": (98.8, 0.3)},
}

#: "on average, only 26 over 429 kernels are selected for the iono data"
SELECTED_L1_IONOSPHERE = 26
