// model.h: write a model plugin in C++20. Includes all of the SDK, which is header-only and compiled by the plugin's
// own compiler. base.h has a complete model; each header opens with an example.
#pragma once
#include "abi.h"
#include "base.h"
#include "batch.h"
#include "config.h"
#include "context.h"
#include "entry.h"
#include "function.h"
#include "layers.h"
#include "losses.h"
#include "ops.h"
#include "parallel.h"
#include "raw.h"
#include "tensor.h"
