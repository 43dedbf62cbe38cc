"""The programs: each builds its objects, connects them and starts."""

import warnings

# taskflow imports eventlet even where nothing uses it; operators cannot do anything about that.
warnings.filterwarnings("ignore", r"\s*Eventlet is deprecated")
