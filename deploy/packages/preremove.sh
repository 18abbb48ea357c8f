#!/bin/sh
# Runs before the package is removed ("remove" on Debian, 0 on Fedora), or replaced by another version.
case "$1" in
remove | 0)
	if [ -d /run/systemd/system ]; then
		systemctl disable --now weir.service || true
	fi
	;;
esac
