"""Pages people can hand on: one self-contained HTML file for one study or several (extra ``report``)."""
