from workbench.compat import towers as towers
from workbench.compat import v1 as v1
