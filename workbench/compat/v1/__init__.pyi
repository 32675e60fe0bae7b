from workbench.compat.v1 import distribute as distribute
