from workbench.compat.v1 import debugging as debugging
from workbench.compat.v1 import distribute as distribute
