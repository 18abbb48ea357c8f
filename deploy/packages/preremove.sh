#!/bin/sh
# Runs before the package is removed or, with "upgrade" (deb) or 1 (rpm), replaced by another version.
set -e
case "$1" in
upgrade | 1) exit 0 ;;
esac
if [ -d /run/systemd/system ]; then
	systemctl disable --now weir.service
fi
