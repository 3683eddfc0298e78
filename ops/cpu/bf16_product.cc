#include "ops/cpu/bf16_product.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <utility>

#include "ops/cpu/onednn.h"
#include "proto/base/check.h"

namespace troupe {
namespace {

using DataType = dnnl::memory::data_type;

// A [rows, columns] operand, which lies in memory as it is or transposed.
dnnl::memory::desc Describe(int64_t rows, int64_t columns, int64_t stride,
                            bool transposed, DataType type) {
  const dnnl::memory::dims strides = transposed ? dnnl::memory::dims{1, stride}
                                                : dnnl::memory::dims{stride, 1};
  return {{rows, columns}, type, strides};
}

dnnl::matmul::desc Describe(const Bf16ProductShape& s) {
  const dnnl::memory::desc a =
      Describe(s.m, s.k, s.a_stride, s.transpose_a, DataType::bf16);
  const dnnl::memory::desc b =
      Describe(s.k, s.n, s.b_stride, s.transpose_b, DataType::bf16);
  const dnnl::memory::desc c = Describe(
      s.m, s.n, s.c_stride, false, s.c_is_f32 ? DataType::f32 : DataType::bf16);
  if (!s.bias) return {a, b, c};
  return {a, b, Describe(1, s.n, s.n, false, DataType::bf16), c};
}

dnnl::primitive_attr Attributes(const Bf16ProductShape& s) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  return attributes;
}

}  // namespace

// Executed by any number of threads at once: its working memory comes with each
// call.
class Bf16Products::Primitive {
 public:
  explicit Primitive(const Bf16ProductShape& shape)
      : engine_(dnnl::engine::kind::cpu, 0),
        description_(Describe(shape), Attributes(shape), engine_),
        product_(description_) {}

  void Execute(const Bf16ProductMatrices& matrices,
               ScratchPool& scratch) const {
    const auto memory = [&](const dnnl::memory::desc& description,
                            const void* data) {
      return dnnl::memory(description, engine_, const_cast<void*>(data));
    };
    ScratchPool::Block working =
        scratch.Take(description_.scratchpad_desc().get_size());
    std::unordered_map<int, dnnl::memory> arguments = {
        {DNNL_ARG_SRC, memory(description_.src_desc(), matrices.a)},
        {DNNL_ARG_WEIGHTS, memory(description_.weights_desc(), matrices.b)},
        {DNNL_ARG_DST, memory(description_.dst_desc(), matrices.c)},
        {DNNL_ARG_SCRATCHPAD,
         memory(description_.scratchpad_desc(), working.as<void>())}};
    if (matrices.bias != nullptr) {
      arguments.emplace(DNNL_ARG_BIAS,
                        memory(description_.bias_desc(), matrices.bias));
    }
    dnnl::stream stream(engine_);
    product_.execute(stream, arguments);
    stream.wait();
  }

 private:
  dnnl::engine engine_;
  dnnl::matmul::primitive_desc description_;
  dnnl::matmul product_;
};

Bf16Products::Bf16Products(size_t kept_max) : kept_max_(kept_max) {
  CHECK_GE(kept_max, 1u);
}

Bf16Products::~Bf16Products() = default;

size_t Bf16Products::kept() const {
  absl::MutexLock lock(&mutex_);
  return kept_.size();
}

std::shared_ptr<const Bf16Products::Primitive> Bf16Products::Find(
    const Bf16ProductShape& shape) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = kept_.find(shape);
    if (found != kept_.end()) {
      found->second.last_use = ++uses_;
      return found->second.primitive;
    }
  }
  // Two threads may both make it; one of them is kept.
  auto made = std::make_shared<const Primitive>(shape);
  absl::MutexLock lock(&mutex_);
  if (kept_.size() == kept_max_ && !kept_.contains(shape)) {
    kept_.erase(std::min_element(kept_.begin(), kept_.end(),
                                 [](const auto& a, const auto& b) {
                                   return a.second.last_use < b.second.last_use;
                                 }));
  }
  kept_[shape] = {.primitive = made, .last_use = ++uses_};
  return made;
}

void Bf16Products::Multiply(const Bf16ProductShape& shape,
                            const Bf16ProductMatrices& matrices,
                            ScratchPool& scratch) {
  CHECK_EQ(shape.bias, matrices.bias != nullptr);
  const absl::Status done =
      CallOneDnn([&] { Find(shape)->Execute(matrices, scratch); });
  CHECK(done.ok()) << "product of [" << shape.m << ", " << shape.k << "] by ["
                   << shape.k << ", " << shape.n << "] in bf16: " << done;
}

}  // namespace troupe
