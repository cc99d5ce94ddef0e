// The CUDA side of the table in device/kernels.h: what each file of kernels here gives.
#pragma once

#include "core/device/kernels.h"
#include "core/device/update_math.h"

namespace trireme::device::cuda {

void update(const UpdateArguments& arguments, Stream& stream);
void add(std::span<float> into, std::span<const float> left, std::span<const float> right,
         std::span<double> tile_squares, Stream& stream);
void add_f64(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream& stream);
void tile_squares(std::span<const float> values, std::span<double> squares, Stream& stream);
void scale(std::span<float> values, float factor, Stream& stream);
void fill(std::span<float> values, float value, Stream& stream);

// Device memory that carries an update's factors from its first kernel to its second. Set once, by the device.
void set_update_scratch(UpdateFactors* factors);

}  // namespace trireme::device::cuda
