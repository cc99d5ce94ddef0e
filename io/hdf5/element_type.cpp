// HDF5 types to ours and back.
#include "io/hdf5/element_type.h"

#include <bit>
#include <cstdint>

#include "core/base/error.h"

namespace trireme::io {
namespace {

TypeHandle two_byte_float(bool brain, H5T_order_t order) {
  TypeHandle type(H5Tcopy(order == H5T_ORDER_BE ? H5T_IEEE_F32BE : H5T_IEEE_F32LE));
  // sign at bit 15, then the exponent, then the mantissa (IEEE 754 binary16; bfloat16)
  const std::size_t mantissa = brain ? 7 : 10;
  H5Tset_fields(type.get(), 15, mantissa, 15 - mantissa, 0, mantissa);
  H5Tset_precision(type.get(), 16);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), brain ? 127 : 15);
  return type;
}

TypeHandle boolean_enumeration() {
  TypeHandle type(H5Tenum_create(H5T_STD_I8LE));
  const std::int8_t no = 0, yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

bool is_boolean(hid_t enumeration) {
  if (H5Tget_nmembers(enumeration) != 2 || H5Tget_size(enumeration) != 1) return false;
  for (unsigned member = 0; member < 2; ++member) {
    char* const name = H5Tget_member_name(enumeration, member);
    const std::string text = name != nullptr ? name : "";
    H5free_memory(name);
    std::int8_t value = -1;
    H5Tget_member_value(enumeration, member, &value);
    if (text != (value == 0 ? "FALSE" : "TRUE") || (value != 0 && value != 1)) return false;
  }
  return true;
}

std::string order_text(hid_t type) {
  if (H5Tget_size(type) == 1) return "";
  return H5Tget_order(type) == H5T_ORDER_BE ? "big-endian " : "little-endian ";
}

ElementType integer_type(hid_t stored, const std::string& where) {
  const std::size_t bits = H5Tget_precision(stored);
  const bool has_sign = H5Tget_sign(stored) != H5T_SGN_NONE;
  ElementType type;
  type.stored = fmt::format("{}-bit {}{} integer", bits, order_text(stored), has_sign ? "signed" : "unsigned");
  if (bits > 64) fail(ExitCode::data, "{}: is stored as {}; at most 64 bits can be read", where, type.stored);
  type.unsigned64 = !has_sign && bits == 64;
  if (has_sign) {
    type.dtype = bits <= 32 ? Dtype::i32 : Dtype::i64;
  } else {
    type.dtype = bits <= 8 ? Dtype::u8 : bits < 32 ? Dtype::i32 : Dtype::i64;
  }
  return type;
}

ElementType float_type(hid_t stored) {
  std::size_t sign = 0, exponent_at = 0, exponent = 0, mantissa_at = 0, mantissa = 0;
  H5Tget_fields(stored, &sign, &exponent_at, &exponent, &mantissa_at, &mantissa);
  ElementType type;
  type.stored = fmt::format("{}-bit {}float", H5Tget_precision(stored), order_text(stored));
  // Wider ones are rounded to f64, and refused where they leave its range.
  type.dtype = exponent <= 8 && mantissa <= 23 ? Dtype::f32 : Dtype::f64;
  return type;
}

const char* unreadable_class(H5T_class_t kind) {
  switch (kind) {
    case H5T_STRING: return "text";
    case H5T_VLEN: return "variable-length rows";
    case H5T_COMPOUND: return "a compound type";
    case H5T_REFERENCE: return "references";
    case H5T_OPAQUE: return "an opaque type";
    case H5T_ARRAY: return "an array type";
    case H5T_TIME: return "a time type";
    case H5T_BITFIELD: return "a bit field wider than 8 bits";
    default: return "a type unknown to Trireme";
  }
}

}  // namespace

ElementType element_type(hid_t stored, const std::string& where) {
  const H5T_class_t kind = H5Tget_class(stored);
  if (kind == H5T_INTEGER) return integer_type(stored, where);
  if (kind == H5T_FLOAT) return float_type(stored);
  if (kind == H5T_BITFIELD && H5Tget_size(stored) == 1) {
    ElementType type;
    type.dtype = Dtype::boolean;
    type.stored = "8-bit bit field";
    type.bits = true;
    return type;
  }
  if (kind == H5T_ENUM) {
    if (is_boolean(stored)) {
      ElementType type;
      type.dtype = Dtype::boolean;
      type.stored = "bool (enumeration FALSE, TRUE)";
      return type;
    }
    const TypeHandle base(H5Tget_super(stored));
    ElementType type = integer_type(base.get(), where);
    type.stored = "enumeration over " + type.stored;
    return type;
  }
  fail(ExitCode::data,
       "{}: holds {}; a field needs integers, floats or bools. Store it as numbers (ragged rows: padded, with a "
       "field of lengths)",
       where, unreadable_class(kind));
}

TypeHandle memory_type(Dtype dtype) {
  constexpr H5T_order_t order = std::endian::native == std::endian::big ? H5T_ORDER_BE : H5T_ORDER_LE;
  switch (dtype) {
    case Dtype::f64: return TypeHandle(H5Tcopy(H5T_NATIVE_DOUBLE));
    case Dtype::f32: return TypeHandle(H5Tcopy(H5T_NATIVE_FLOAT));
    case Dtype::f16: return two_byte_float(false, order);
    case Dtype::bf16: return two_byte_float(true, order);
    case Dtype::i64: return TypeHandle(H5Tcopy(H5T_NATIVE_INT64));
    case Dtype::i32: return TypeHandle(H5Tcopy(H5T_NATIVE_INT32));
    case Dtype::u8: return TypeHandle(H5Tcopy(H5T_NATIVE_UINT8));
    case Dtype::boolean: return boolean_enumeration();
  }
  return TypeHandle();
}

TypeHandle file_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::f64: return TypeHandle(H5Tcopy(H5T_IEEE_F64LE));
    case Dtype::f32: return TypeHandle(H5Tcopy(H5T_IEEE_F32LE));
    case Dtype::f16: return two_byte_float(false, H5T_ORDER_LE);
    case Dtype::bf16: return two_byte_float(true, H5T_ORDER_LE);
    case Dtype::i64: return TypeHandle(H5Tcopy(H5T_STD_I64LE));
    case Dtype::i32: return TypeHandle(H5Tcopy(H5T_STD_I32LE));
    case Dtype::u8: return TypeHandle(H5Tcopy(H5T_STD_U8LE));
    case Dtype::boolean: return boolean_enumeration();
  }
  return TypeHandle();
}

}  // namespace trireme::io
