"""Sphinx builds the guide with this: `python -m sphinx -W -c notebooks/guide notebooks FOLDER`.

The source folder is `notebooks`, so that the labs are pages of the guide. Every page works offline: theme, fonts and
scripts are local files.
"""

import sys
from pathlib import Path

GUIDE = Path(__file__).parent
sys.path.insert(0, str(GUIDE))  # for directives.py

import workbench  # noqa: E402 - after the path

project = "workbench"
author = "The workbench developers"
copyright = "the workbench developers"
version = release = workbench.__version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "directives",
]
root_doc = "guide/index"
include_patterns = ["guide/**", "*.ipynb"]
exclude_patterns = ["**/.ipynb_checkpoints", "**/*.py", "*_new.ipynb"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # the tests run the labs and the blocks of the guide
nb_ipywidgets_js = {}  # no widget state is stored in the labs; by default each lab would load a script from elsewhere

default_role = "py:obj"  # `name` in docstrings: code, and a link where there is something to link to
autodoc_typehints = "signature"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 80
napoleon_numpy_docstring = False
napoleon_use_ivar = True  # attributes are fields of their class; some are properties too
napoleon_use_rtype = False
suppress_warnings = ["config.cache"]

html_theme = "furo"
html_title = "workbench"
html_static_path = ["static"]
html_css_files = ["guide.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
copybutton_prompt_text = "$ "
