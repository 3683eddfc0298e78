#include "ops/swiglu.h"

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"
#include "ops/cpu/rows_present.h"

namespace troupe::cpu {
namespace {

// The rows of one tensor, wherever they lie.
template <typename T>
class Rows {
 public:
  explicit Rows(const Tensor& t) : data_(t.data<T>()), stride_(t.RowStride()) {}
  T* operator[](int64_t row) const { return data_ + row * stride_; }

 private:
  T* data_;
  int64_t stride_;
};

}  // namespace

void SwiGlu(Device& device, const SwiGluArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.y.columns();
  const float* const weights = DataFrom<float>(args.weights, 0);
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    const Rows<T> gate(args.gate), up(args.up), y(args.y);
    const int64_t rows = RowsPresent(args.offsets, args.y.rows());
    cpu.ForRows(rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        cpu.loops<T>().swiglu(gate[row], up[row], y[row], n,
                              weights != nullptr ? weights[row] : 1.0f);
      }
    });
  });
}

void SwiGluBackward(Device& device, const SwiGluBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t n = args.dy.columns();
  const float* const weights = DataFrom<float>(args.weights, 0);
  float* const d_weights = DataFrom<float>(args.d_weights, 0);
  WithActivationType(args.dy.dtype(), [&]<typename T>() {
    const Rows<T> gate(args.gate), up(args.up), dy(args.dy);
    const Rows<T> d_gate(args.d_gate), d_up(args.d_up);
    const int64_t rows = RowsPresent(args.offsets, args.dy.rows());
    cpu.ForRows(rows, n, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const float d_weight = cpu.loops<T>().swiglu_backward(
            gate[row], up[row], dy[row], d_gate[row], d_up[row], n,
            weights != nullptr ? weights[row] : 1.0f);
        if (d_weights != nullptr) d_weights[row] = d_weight;
      }
    });
  });
}

}  // namespace troupe::cpu
