#include "ops/cuda/cudnn_attention.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/log.h"
#include "proto/base/status.h"

namespace troupe::cuda {
namespace {

std::string ShapeText(const CudnnAttentionShape& s) {
  return absl::StrCat(s.batch, " samples of ", s.q_length, " queries and ",
                      s.kv_length, " keys in ", s.heads, " heads of ",
                      s.head_dim, ", ", s.kv_heads, " of keys, in ",
                      DTypeName(s.type));
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudnnAttention>> CudnnAttention::Create(
    FirstLaunches& launches) {
  ASSIGN_OR_RETURN(const CudnnLibrary library, CudnnLibrary::Load());
  if (library.get_version() < kVersionMin) {
    return absl::FailedPreconditionError(
        absl::StrCat("cuDNN ", library.VersionText(),
                     " is older than 9.19: attention is by our own kernels"));
  }
  return std::unique_ptr<CudnnAttention>(new CudnnAttention(library, launches));
}

CudnnAttention::~CudnnAttention() {
  absl::MutexLock lock(&mutex_);
  plans_.clear();
  if (handle_ != nullptr) library_.destroy(handle_);
}

absl::StatusOr<CudnnPlan> CudnnAttention::Plan(
    const CudnnAttentionShape& shape) {
  if (handle_ == nullptr) {
    RETURN_IF_ERROR(
        library_.ToStatus(library_.create(&handle_), "cudnnCreate"));
  }
  return CudnnAttentionGraph(library_, shape).Plan({.handle = handle_});
}

const CudnnPlan* CudnnAttention::Find(const CudnnAttentionShape& shape) {
  {
    absl::MutexLock lock(&mutex_);
    const auto found = plans_.find(shape);
    if (found != plans_.end()) return found->second.get();
    if (plans_.size() == kShapesMax) return nullptr;
  }
  const CudnnPlan* plan = nullptr;
  launches_.RunAlone([&](bool) {
    absl::MutexLock lock(&mutex_);
    auto [entry, is_new] = plans_.try_emplace(shape);
    if (is_new) {
      absl::StatusOr<CudnnPlan> made = Plan(shape);
      if (made.ok()) {
        entry->second = std::make_unique<CudnnPlan>(*std::move(made));
      } else {
        LogInfo(
            absl::StrCat("attention, ", shape.backward ? "backward" : "forward",
                         ", of ", ShapeText(shape),
                         " is by our own kernels: ", made.status().message()));
      }
    }
    plan = entry->second.get();
  });
  return plan;
}

absl::Status CudnnAttention::Enqueue(const CudnnPlan& plan,
                                     absl::Span<const CudnnBinding> bindings,
                                     void* workspace, cudaStream_t stream) {
  std::vector<int64_t> ids;
  std::vector<void*> pointers;
  for (const CudnnBinding& binding : bindings) {
    ids.push_back(binding.id);
    pointers.push_back(const_cast<void*>(binding.at));
  }
  ASSIGN_OR_RETURN(
      CudnnDescriptor pack,
      CudnnDescriptor::Create(library_, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
  RETURN_IF_ERROR(
      pack.SetAll<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, ids));
  RETURN_IF_ERROR(
      pack.SetPointers(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, pointers));
  RETURN_IF_ERROR(
      pack.SetPointers(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, {workspace}));
  RETURN_IF_ERROR(pack.Finalize());
  absl::Status status;
  launches_.Run(&plan, [&] {
    absl::MutexLock lock(&mutex_);
    status = library_.ToStatus(library_.set_stream(handle_, stream),
                               "cudnnSetStream");
    if (!status.ok()) return;
    status = library_.ToStatus(
        library_.execute(handle_, plan.plan.get(), pack.get()),
        "cudnnBackendExecute");
  });
  return status;
}

}  // namespace troupe::cuda
