#include "tests/bench/timing_device.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/matmul.h"
#include "proto/base/clock.h"

namespace troupe {
namespace {

// What is worth knowing of a call beyond its kernel's name.
template <typename Args>
std::string Detail(const Args&) {
  return "";
}
template <>
std::string Detail(const MatMulArgs& args) {
  const int64_t k = args.transpose_a ? args.a.rows() : args.a.columns();
  return absl::StrCat(" ", args.c.rows(), "x", args.c.columns(), "x", k, " ",
                      args.transpose_a ? "t" : "n",
                      args.transpose_b ? "t" : "n",
                      args.activation == Activation::kGelu ? " gelu" : "",
                      args.gelu_input.defined() ? " gelu slope" : "");
}

constexpr const char* kNames[] = {"matmul",
                                  "bias_gradient",
                                  "embedding",
                                  "embedding_backward",
                                  "apply_dropout",
                                  "layer_norm",
                                  "layer_norm_backward_input",
                                  "layer_norm_backward_weight",
                                  "gelu",
                                  "gelu_backward",
                                  "attention",
                                  "attention_backward",
                                  "cross_entropy",
                                  "adamw",
                                  "sum_of_squares",
                                  "sgd",
                                  "add",
                                  "scale",
                                  "fill",
                                  "copy",
                                  "fill_normal",
                                  "rms_norm",
                                  "rms_norm_backward_input",
                                  "rms_norm_backward_weight",
                                  "swiglu",
                                  "swiglu_backward",
                                  "rotary",
                                  "cross_entropy_parts",
                                  "row_sums",
                                  "row_sums_backward",
                                  "split_norm",
                                  "split_norm_backward_input",
                                  "causal_softmax",
                                  "causal_softmax_backward",
                                  "route",
                                  "route_backward",
                                  "route_load",
                                  "sort_choices",
                                  "gather_rows",
                                  "sum_rows",
                                  "grouped_matmul",
                                  "grouped_weight_gradient"};

// The kernel of the device inside, timed under kNames[name].
template <int name, auto kernel, typename Args>
void Timed(Device& device, const Args& args) {
  auto& timing = static_cast<TimingDevice&>(device);
  const RealClock clock;
  const int64_t start = clock.MonotonicNanos();
  (timing.timed().kernels().*kernel)(timing.timed(), args);
  timing.Count(absl::StrCat(kNames[name], Detail(args)),
               1e-9 * static_cast<double>(clock.MonotonicNanos() - start));
}

constexpr KernelTable kTable = {
    .matmul = Timed<0, &KernelTable::matmul>,
    .bias_gradient = Timed<1, &KernelTable::bias_gradient>,
    .embedding = Timed<2, &KernelTable::embedding>,
    .embedding_backward = Timed<3, &KernelTable::embedding_backward>,
    .apply_dropout = Timed<4, &KernelTable::apply_dropout>,
    .layer_norm = Timed<5, &KernelTable::layer_norm>,
    .layer_norm_backward_input =
        Timed<6, &KernelTable::layer_norm_backward_input>,
    .layer_norm_backward_weight =
        Timed<7, &KernelTable::layer_norm_backward_weight>,
    .rms_norm = Timed<21, &KernelTable::rms_norm>,
    .rms_norm_backward_input = Timed<22, &KernelTable::rms_norm_backward_input>,
    .rms_norm_backward_weight =
        Timed<23, &KernelTable::rms_norm_backward_weight>,
    .row_sums = Timed<28, &KernelTable::row_sums>,
    .row_sums_backward = Timed<29, &KernelTable::row_sums_backward>,
    .split_norm = Timed<30, &KernelTable::split_norm>,
    .split_norm_backward_input =
        Timed<31, &KernelTable::split_norm_backward_input>,
    .gelu = Timed<8, &KernelTable::gelu>,
    .gelu_backward = Timed<9, &KernelTable::gelu_backward>,
    .swiglu = Timed<24, &KernelTable::swiglu>,
    .swiglu_backward = Timed<25, &KernelTable::swiglu_backward>,
    .route = Timed<34, &KernelTable::route>,
    .route_backward = Timed<35, &KernelTable::route_backward>,
    .route_load = Timed<36, &KernelTable::route_load>,
    .sort_choices = Timed<37, &KernelTable::sort_choices>,
    .gather_rows = Timed<38, &KernelTable::gather_rows>,
    .sum_rows = Timed<39, &KernelTable::sum_rows>,
    .grouped_matmul = Timed<40, &KernelTable::grouped_matmul>,
    .grouped_weight_gradient = Timed<41, &KernelTable::grouped_weight_gradient>,
    .rotary = Timed<26, &KernelTable::rotary>,
    .attention = Timed<10, &KernelTable::attention>,
    .attention_backward = Timed<11, &KernelTable::attention_backward>,
    .causal_softmax = Timed<32, &KernelTable::causal_softmax>,
    .causal_softmax_backward = Timed<33, &KernelTable::causal_softmax_backward>,
    .cross_entropy = Timed<12, &KernelTable::cross_entropy>,
    .cross_entropy_parts = Timed<27, &KernelTable::cross_entropy_parts>,
    .adamw = Timed<13, &KernelTable::adamw>,
    .sgd = Timed<15, &KernelTable::sgd>,
    .sum_of_squares = Timed<14, &KernelTable::sum_of_squares>,
    .add = Timed<16, &KernelTable::add>,
    .scale = Timed<17, &KernelTable::scale>,
    .fill = Timed<18, &KernelTable::fill>,
    .copy = Timed<19, &KernelTable::copy>,
    .fill_normal = Timed<20, &KernelTable::fill_normal>,
};

}  // namespace

TimingDevice::TimingDevice(std::unique_ptr<Device> device)
    : device_(std::move(device)) {}

const KernelTable& TimingDevice::kernels() const { return kTable; }

absl::StatusOr<void*> TimingDevice::Allocate(size_t bytes) {
  return device_->Allocate(bytes);
}
void TimingDevice::Free(void* memory) { device_->Free(memory); }
void TimingDevice::CopyWithin(void* to, const void* from, size_t bytes) {
  device_->CopyWithin(to, from, bytes);
}
void TimingDevice::CopyFromHost(void* to, const void* from, size_t bytes) {
  device_->CopyFromHost(to, from, bytes);
}
void TimingDevice::CopyToHost(void* to, const void* from, size_t bytes) {
  device_->CopyToHost(to, from, bytes);
}
void TimingDevice::Zero(void* to, size_t bytes) { device_->Zero(to, bytes); }

}  // namespace troupe
