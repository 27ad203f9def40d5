// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#define TRIFOLD_VERSION_MAJOR 0
#define TRIFOLD_VERSION_MINOR 1
#define TRIFOLD_VERSION_PATCH 0
#define TRIFOLD_VERSION "0.1.0"
