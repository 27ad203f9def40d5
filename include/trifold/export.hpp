// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#if defined(__GNUC__)
#define TRIFOLD_API __attribute__((visibility("default")))
#else
#define TRIFOLD_API
#endif
