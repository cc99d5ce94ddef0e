/* abi.h: the C boundary between Trireme's core and a model plugin.
 * Append-only and frozen per major version. A table may be shorter than this
 * header says (older peer): read `size` before any field past the first two.
 * All functions are called on the compute thread of the rank, except bodies
 * given to parallel_for. Strings are not null-terminated. Sizes are elements
 * unless a name ends in _bytes. Nothing throws across this boundary.
 *
 * The host calls create once, then for each micro-batch forward and loss (or
 * step, for raw plugins). What each host function may be called in stands over
 * it; anywhere else it fails and says so. C++ authors use model.h instead. */
#ifndef TRIREME_ABI_H
#define TRIREME_ABI_H
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TRIREME_ABI_MAJOR 1u
#define TRIREME_ABI_MINOR 0u
#define TRIREME_MAX_RANK 8
#define TRIREME_SYMBOL "trireme_plugin_table"

typedef int32_t trireme_status; /* 0 is success; text is held by the host */
enum { TRIREME_OK = 0, TRIREME_FAILED = 1, TRIREME_UNSUPPORTED = 2, TRIREME_INVALID = 3 };

typedef int32_t trireme_dtype;
enum { TRIREME_F64 = 0, TRIREME_F32, TRIREME_F16, TRIREME_BF16, TRIREME_I64, TRIREME_I32, TRIREME_U8, TRIREME_BOOL };
typedef int32_t trireme_device;
enum { TRIREME_CPU = 0, TRIREME_CUDA = 1 };
typedef int32_t trireme_mode;
enum { TRIREME_TRAIN = 0, TRIREME_EVALUATE = 1, TRIREME_PREDICT = 2 };
typedef int32_t trireme_reduce;
enum { TRIREME_MEAN = 0, TRIREME_MAX = 1 };
typedef int32_t trireme_init; /* the core initialises: addressed randomness */
enum { TRIREME_ZEROS = 0, TRIREME_CONSTANT, TRIREME_UNIFORM, TRIREME_NORMAL };
typedef int32_t trireme_distribution;
enum { TRIREME_RANDOM_UNIFORM = 0, TRIREME_RANDOM_NORMAL = 1, TRIREME_RANDOM_BITS = 2 };
enum { TRIREME_FLAG_DYNAMIC = 1u << 0, TRIREME_FLAG_CAPTURABLE = 1u << 1 };
enum { TRIREME_PARAMETER_NO_DECAY = 1u << 0 };

typedef struct trireme_string {
  const char* data;
  size_t size;
} trireme_string;
typedef struct trireme_shape {
  int32_t rank;
  int32_t reserved;
  int64_t dims[TRIREME_MAX_RANK];
} trireme_shape;

typedef uint64_t trireme_tensor; /* 0 is none; valid until its micro-batch ends: a stale one is refused */
typedef uint32_t trireme_op;
typedef struct trireme_core trireme_core;     /* opaque: the host's state */
typedef struct trireme_config trireme_config; /* opaque: keys of [model] */

/* What a handle stands for: dense, row-major. `data` is device memory of `device`. Images are (B, H, W, C). */
typedef struct trireme_view {
  void* data;
  trireme_shape shape;
  int64_t strides[TRIREME_MAX_RANK]; /* elements */
  trireme_dtype dtype;
  trireme_device device;
} trireme_view;

typedef int32_t trireme_attribute_kind;
enum { TRIREME_ATTR_INTEGER = 0, TRIREME_ATTR_NUMBER, TRIREME_ATTR_INTEGERS, TRIREME_ATTR_TEXT };
typedef struct trireme_attribute {
  trireme_string name;
  trireme_attribute_kind kind;
  int32_t reserved;
  int64_t integer;
  double number;
  const int64_t* integers;
  size_t integer_count;
  trireme_string text;
} trireme_attribute;

typedef struct trireme_field { /* one sample, without the batch dimension */
  trireme_string name;
  trireme_shape shape;
  trireme_dtype dtype;
  int32_t reserved;
} trireme_field;

typedef struct trireme_span { /* elements of the gradient arena */
  uint64_t begin, end;
} trireme_span;

/* Device memory, read by kernels. Host half copied before each micro-batch;
 * device half written by the update alone and part of a checkpoint. */
typedef struct trireme_step_block {
  uint64_t step, seed;
  uint32_t micro_batch, phase;
  uint64_t updates, skips;
  double beta1_product, beta2_product;
  float loss_scale;
  uint32_t good_steps;
  uint32_t halted, reserved;
} trireme_step_block;

typedef struct trireme_call {
  uint32_t size;
  trireme_mode mode;
  uint32_t phase;
  int64_t rows;
  void* stream;                         /* cudaStream_t, or null on cpu */
  const trireme_step_block* step_block; /* device memory */
  const trireme_tensor* fields;         /* order of create's fields */
  size_t field_count;
  const trireme_tensor* parameters; /* order of declaration */
  size_t parameter_count;
  const trireme_tensor* gradients; /* null unless training, raw */
  const trireme_span* ranges;      /* of the parameters in the gradient arena */
  const trireme_tensor* buffers;   /* read-only; order of declaration */
  size_t buffer_count;
  const trireme_tensor* new_buffers; /* null unless training; one left alone keeps its value */
  const trireme_tensor* outputs;     /* in loss: what forward gave */
  size_t output_count;
} trireme_call;

typedef struct trireme_parameter {
  trireme_string name;
  trireme_shape shape;
  trireme_init init;
  uint32_t flags;
  double a, b; /* constant; uniform [a,b); normal mean a, deviation b */
  uint32_t phase;
  uint32_t reserved;
} trireme_parameter;

typedef struct trireme_key { /* one declared key of [model] */
  trireme_string name, help;
  double low, high;
  int32_t low_open, high_open;
} trireme_key;

typedef trireme_status (*trireme_custom_forward)(void* state, const trireme_tensor* in, size_t in_count,
                                                 const trireme_tensor* out, size_t out_count);
typedef trireme_status (*trireme_custom_backward)(
    void* state, const trireme_tensor* in, size_t in_count, const trireme_tensor* out, size_t out_count,
    const trireme_tensor* out_gradients, /* 0: none came */
    const trireme_tensor* in_gradients); /* 0: not wanted; else write all */
/* Ops applied inside forward or backward are not recorded. `release` (may be null) is called with
 * state when the micro-batch ends. */
typedef struct trireme_custom {
  trireme_custom_forward forward;
  trireme_custom_backward backward;
  void* state;
  void (*release)(void* state);
} trireme_custom;

typedef struct trireme_host {
  uint32_t size, abi_major, abi_minor, dry; /* dry: describe only, no memory, no fields */
  trireme_core* core;
  /* create alone */
  trireme_status (*config_integer)(trireme_core*, trireme_config*, const trireme_key*, int64_t fallback, int64_t* out);
  trireme_status (*config_number)(trireme_core*, trireme_config*, const trireme_key*, double fallback, double* out);
  trireme_status (*config_boolean)(trireme_core*, trireme_config*, const trireme_key*, int32_t fallback, int32_t* out);
  trireme_status (*config_text)(trireme_core*, trireme_config*, const trireme_key*, trireme_string fallback,
                                const trireme_string* choices, size_t choice_count, trireme_string* out);
  trireme_status (*declare_input)(trireme_core*, const trireme_field*); /* a dimension of -1: any */
  trireme_status (*declare_parameter)(trireme_core*, const trireme_parameter*, uint32_t* index);
  trireme_status (*declare_buffer)(trireme_core*, trireme_string name, const trireme_shape*, trireme_dtype,
                                   trireme_reduce, double initial, uint32_t* index);
  trireme_status (*declare_output)(trireme_core*, trireme_string name, const trireme_shape*, trireme_dtype);
  trireme_status (*declare_phase)(trireme_core*, trireme_string name, uint32_t* phase);
  /* anywhere */
  trireme_status (*op)(trireme_core*, trireme_string name, uint32_t version, trireme_op* id);
  /* forward, loss, predict, step, custom functions. apply: an out that is not 0 is written in place (a
   * new buffer, memory of allocate, an output of the running custom function); gradients stop there. */
  trireme_status (*apply)(trireme_core*, trireme_op, const trireme_tensor* in, size_t in_count,
                          const trireme_attribute*, size_t attribute_count, trireme_tensor* out, size_t out_count);
  trireme_status (*shape)(trireme_core*, trireme_tensor, trireme_shape*, trireme_dtype*); /* computes nothing */
  trireme_status (*view)(trireme_core*, trireme_tensor, trireme_view*);
  trireme_status (*read)(trireme_core*, trireme_tensor, void* to, size_t size_bytes); /* waits: slow */
  trireme_status (*allocate)(trireme_core*, trireme_dtype, const trireme_shape*, trireme_tensor*);
  trireme_status (*workspace)(trireme_core*, size_t size_bytes, void** memory); /* until the plugin's call returns */
  trireme_status (*custom)(trireme_core*, const trireme_custom*, const trireme_tensor* in, size_t in_count,
                           const trireme_field* out_shapes, size_t out_count, trireme_tensor* out);
  /* predict alone: gives back the memory and handles made since */
  trireme_status (*mark)(trireme_core*, uint64_t* mark);
  trireme_status (*rewind)(trireme_core*, uint64_t mark);
  trireme_status (*random)(trireme_core*, trireme_distribution, double a, double b, trireme_tensor into);
  /* What the micro-batch gives: the same names in the same order every time. Sums and weights: one f64. */
  trireme_status (*output)(trireme_core*, trireme_string name, trireme_tensor);
  trireme_status (*report)(trireme_core*, trireme_string name, trireme_tensor sum, trireme_tensor weight);
  trireme_status (*loss)(trireme_core*, trireme_tensor sum, trireme_tensor weight, uint64_t n);
  trireme_status (*gradient_ready)(trireme_core*, trireme_span); /* step alone */
  trireme_status (*parallel_for)(trireme_core*, size_t count, void (*body)(void* state, size_t begin, size_t end),
                                 void* state);
  trireme_status (*fail)(trireme_core*, trireme_string message); /* the text of the status about to be returned */
  trireme_string (*last_error)(trireme_core*);                   /* valid until the next call on this core */
} trireme_host;

typedef struct trireme_plugin {
  uint32_t size, abi_major, abi_minor, flags;
  const char *name, *version, *build; /* build: recorded, never compared */
  trireme_status (*create)(const trireme_host*, trireme_config*, const trireme_field*, size_t field_count,
                           void** model);
  void (*destroy)(void* model);
  trireme_status (*forward)(void* model, const trireme_call*);
  trireme_status (*loss)(void* model, const trireme_call*);
  trireme_status (*step)(void* model, const trireme_call*);    /* raw plugins: instead of forward, loss */
  trireme_status (*predict)(void* model, const trireme_call*); /* may be null */
  trireme_status (*summarise)(void* model, trireme_string metric, const double* sums, size_t count, double* value);
} trireme_plugin;

#ifdef __cplusplus
}
#endif
#endif
