"""A fitted model explained: views of its kernels, stability of the weights, parts of a decision, p-values."""

from ..similarity import Agreement, Indefiniteness, agreement, indefiniteness
from .explain import Contributions, ShapleyValues, contributions, feature_weights, shapley_values
from .followed import calibration, martingale_residuals, risk_groups
from .groups import group_table
from .importance import ViewImportance, view_importance, view_p_values
from .pairs import pair_table
from .stability import WeightStability, weight_stability
from .subsets import WithoutView, WithView, add_view, drop_view, view_subsets
from .variance import VarianceSplit, r2_split, split_r2, variance_shares
from .views import TiedViews, final_estimator, kernel_families, kernel_views, tied_views

__all__ = [
    "Agreement", "Contributions", "Indefiniteness", "ShapleyValues", "TiedViews", "VarianceSplit",
    "ViewImportance", "WeightStability", "WithView", "WithoutView", "add_view", "agreement", "calibration",
    "contributions", "drop_view", "feature_weights", "final_estimator", "group_table", "indefiniteness",
    "kernel_families", "kernel_views", "martingale_residuals", "pair_table", "r2_split", "risk_groups",
    "shapley_values", "split_r2", "tied_views",
    "variance_shares", "view_importance", "view_p_values", "view_subsets", "weight_stability",
]  # fmt: skip
__dir__ = __all__.copy  # completion shows the public names alone
