// SPDX-License-Identifier: BSD-3-Clause
// Everything public.
#pragma once

#include "trifold/coefficient.hpp"
#include "trifold/context.hpp"
#include "trifold/device_memory.hpp"
#include "trifold/dtype.hpp"
#include "trifold/error.hpp"
#include "trifold/memory.hpp"
#include "trifold/mesh.hpp"
#include "trifold/outcome.hpp"
#include "trifold/plan.hpp"
#include "trifold/point_function.hpp"
#include "trifold/report.hpp"
#include "trifold/sweep.hpp"
#include "trifold/tridiagonal.hpp"
#include "trifold/version.hpp"
#include "trifold/view.hpp"
