#!/usr/bin/env bash
# Makes the run-time layer of the image (Dockerfile): packages, Open MPI's settings, a user, folders. Run as root while
# the image is built, with install_packages.sh and openmpi.conf beside it.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
"$here/install_packages.sh" image
apt-get clean
rm -rf /var/lib/apt/lists/* /var/log/apt /var/log/dpkg.log /var/log/alternatives.log

cat "$here/openmpi.conf" >>/etc/openmpi/openmpi-mca-params.conf

# Ubuntu's image has a user of that number.
if name=$(id -nu 1000 2>/dev/null); then userdel --remove "$name" 2>/dev/null; fi
useradd --uid 1000 --user-group --create-home --shell /bin/bash zerotrain

# Configs name their data as ../data and write to runs/ in the working directory: both can be mounted as /data and
# /runs. With `docker run --user` it is another user who writes there.
mkdir -p /zerotrain /data /runs
ln -s /data /zerotrain/data
ln -s /runs /zerotrain/runs
chmod 1777 /zerotrain /runs
