// The CUDA side of the table in device/kernels.h: what each file of kernels here gives.
#pragma once

#include "core/device/kernels.h"

namespace trireme::device::cuda {

void update(const UpdateArguments& arguments, Stream& stream);
void add(std::span<float> into, std::span<const float> left, std::span<const float> right,
         std::span<double> tile_squares, Stream& stream);
void add_f64(std::span<double> into, std::span<const double> left, std::span<const double> right, Stream& stream);
void tile_squares(std::span<const float> values, std::span<double> squares, Stream& stream);
void scale(std::span<float> values, float factor, Stream& stream);
void fill(std::span<float> values, float value, Stream& stream);
void seed(void* gradient, Dtype dtype, const StepBlock* block, double n, Stream& stream);
void random(const RandomFill& fill, Stream& stream);

// Throw Error(internal) with the kernel's name and the sizes that disagree (sizes.cpp: kernel files bring no
// formatting).
void check_sizes(const char* kernel, std::size_t into, std::size_t left, std::size_t right);
void check_squares(const char* kernel, std::size_t elements, std::size_t squares);
void check_update(const UpdateArguments& arguments, std::size_t most_tiles);

}  // namespace trireme::device::cuda
