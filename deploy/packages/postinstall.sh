#!/bin/sh
# Runs after the deb or rpm package was installed or upgraded. The service is not started: its limits
# are to be written first.
set -e
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	systemctl try-restart weir.service
fi
