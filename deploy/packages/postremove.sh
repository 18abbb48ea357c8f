#!/bin/sh
# Runs after the package was removed or purged. Only a purge, which is Debian's, removes the state.
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload || true
fi
if [ "$1" = purge ]; then
	rm -rf /var/lib/weir /var/lib/private/weir
fi
