"""Settings of the site: ``make docs`` builds it into ``build/html``, without a network, warnings being errors."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent)]

project = "symc"
author = "the authors of symc"
copyright = "the authors of symc, Apache-2.0"
extensions = ["myst_parser", "site_links", "site_ir", "site_reference", "site_figures"]
exclude_patterns = ["_ext", "README.md"]
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
nitpicky = False

html_theme = "furo"
html_title = "symc"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "github-dark"
templates_path: list[str] = []
