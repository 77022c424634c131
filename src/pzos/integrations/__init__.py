"""pzos behind the interfaces of other projects, one file each."""
