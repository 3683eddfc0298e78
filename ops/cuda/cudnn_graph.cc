#include "ops/cuda/cudnn_graph.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/base/status.h"

namespace troupe::cuda {
namespace {

// Bytes. Numbers in f32 are one for a row of a head, and such rows begin
// anywhere.
int64_t AlignmentOf(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT ? 4 : 16;
}

// Whether its kernels give the same bits each time.
absl::StatusOr<bool> Deterministic(const CudnnLibrary& library,
                                   const CudnnDescriptor& config) {
  ASSIGN_OR_RETURN(
      const CudnnDescriptor engine,
      CudnnDescriptor::Create(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
  cudnnBackendDescriptor_t found = engine.get();
  RETURN_IF_ERROR(
      config.Get(CUDNN_ATTR_ENGINECFG_ENGINE, absl::MakeSpan(&found, 1))
          .status());
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT>
      notes = {};
  ASSIGN_OR_RETURN(
      const int64_t count,
      engine.Get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, absl::MakeSpan(notes)));
  return std::find(notes.begin(), notes.begin() + count,
                   CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) ==
         notes.begin() + count;
}

// Compiles or loads the kernels of one configuration.
absl::StatusOr<CudnnDescriptor> Finish(const CudnnLibrary& library,
                                       const CudnnDescriptor& config,
                                       const CudnnTarget& target) {
  ASSIGN_OR_RETURN(CudnnDescriptor plan,
                   CudnnDescriptor::Create(
                       library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
  RETURN_IF_ERROR(
      target.handle != nullptr
          ? plan.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, target.handle)
          : plan.Set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, target.properties));
  RETURN_IF_ERROR(
      plan.Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config.get()));
  RETURN_IF_ERROR(plan.Finalize());
  return plan;
}

}  // namespace

absl::StatusOr<CudnnTensor> CudnnGraph::NewTensor(
    int64_t id, cudnnDataType_t type, const CudnnLayout& layout,
    absl::Span<const cudnnBackendAttributeName_t> is) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor tensor,
      CudnnDescriptor::Create(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
  RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id));
  RETURN_IF_ERROR(tensor.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, type));
  RETURN_IF_ERROR(
      tensor.SetAll<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS, layout.dims));
  RETURN_IF_ERROR(
      tensor.SetAll<int64_t>(CUDNN_ATTR_TENSOR_STRIDES, layout.strides));
  RETURN_IF_ERROR(
      tensor.Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, AlignmentOf(type)));
  for (const cudnnBackendAttributeName_t what : is) {
    RETURN_IF_ERROR(tensor.Set(what, true));
  }
  RETURN_IF_ERROR(tensor.Finalize());
  parts_.push_back(std::move(tensor));
  return CudnnTensor{.descriptor = parts_.back().get(), .type = type};
}

CudnnTensor CudnnGraph::AddTensor(
    int64_t id, cudnnDataType_t type, const CudnnLayout& layout,
    absl::Span<const cudnnBackendAttributeName_t> is) {
  const absl::StatusOr<CudnnTensor> made = NewTensor(id, type, layout, is);
  Check(made.status());
  return made.ok() ? *made : CudnnTensor();
}

CudnnTensor CudnnGraph::Memory(int64_t id, cudnnDataType_t type,
                               const CudnnLayout& layout) {
  return AddTensor(id, type, layout, {});
}

CudnnTensor CudnnGraph::Number(int64_t id, cudnnDataType_t type) {
  return AddTensor(id, type, CudnnLayout(), {CUDNN_ATTR_TENSOR_IS_BY_VALUE});
}

CudnnTensor CudnnGraph::Between(cudnnDataType_t type,
                                const CudnnLayout& layout) {
  return AddTensor(next_between_++, type, layout,
                   {CUDNN_ATTR_TENSOR_IS_VIRTUAL});
}

absl::Status CudnnGraph::AddOperation(cudnnBackendDescriptorType_t type,
                                      absl::Span<const Attribute> attributes) {
  RETURN_IF_ERROR(status_);
  ASSIGN_OR_RETURN(CudnnDescriptor operation,
                   CudnnDescriptor::Create(library_, type));
  for (const Attribute& attribute : attributes) {
    RETURN_IF_ERROR(operation.Set(attribute.name, attribute.value));
  }
  RETURN_IF_ERROR(operation.Finalize());
  operations_.push_back(operation.get());
  parts_.push_back(std::move(operation));
  return absl::OkStatus();
}

void CudnnGraph::MatMul(const CudnnTensor& a, const CudnnTensor& b,
                        const CudnnTensor& c) {
  Check([&] {
    ASSIGN_OR_RETURN(
        CudnnDescriptor product,
        CudnnDescriptor::Create(library_, CUDNN_BACKEND_MATMUL_DESCRIPTOR));
    RETURN_IF_ERROR(product.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT));
    RETURN_IF_ERROR(product.Finalize());
    parts_.push_back(std::move(product));
    return AddOperation(
        CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_MATMUL_DESC, parts_.back().get()},
         {CUDNN_ATTR_OPERATION_MATMUL_ADESC, a.descriptor},
         {CUDNN_ATTR_OPERATION_MATMUL_BDESC, b.descriptor},
         {CUDNN_ATTR_OPERATION_MATMUL_CDESC, c.descriptor}});
  }());
}

absl::Status CudnnGraph::AddPointwise(cudnnPointwiseMode_t mode, int64_t axis,
                                      cudnnDataType_t math,
                                      std::vector<Attribute> tensors) {
  ASSIGN_OR_RETURN(
      CudnnDescriptor what,
      CudnnDescriptor::Create(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR));
  RETURN_IF_ERROR(what.Set(CUDNN_ATTR_POINTWISE_MODE, mode));
  RETURN_IF_ERROR(what.Set(CUDNN_ATTR_POINTWISE_MATH_PREC, math));
  if (mode == CUDNN_POINTWISE_GEN_INDEX) {
    RETURN_IF_ERROR(what.Set(CUDNN_ATTR_POINTWISE_AXIS, axis));
  }
  RETURN_IF_ERROR(what.Finalize());
  tensors.push_back({CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what.get()});
  parts_.push_back(std::move(what));
  return AddOperation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, tensors);
}

void CudnnGraph::Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x,
                       const CudnnTensor& y) {
  Check(AddPointwise(mode, 0, CUDNN_DATA_FLOAT,
                     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}}));
}

void CudnnGraph::Apply(cudnnPointwiseMode_t mode, const CudnnTensor& x,
                       const CudnnTensor& b, const CudnnTensor& y) {
  const bool whole = y.type == CUDNN_DATA_INT32 || y.type == CUDNN_DATA_BOOLEAN;
  Check(AddPointwise(mode, 0, whole ? y.type : CUDNN_DATA_FLOAT,
                     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}}));
}

void CudnnGraph::Select(const CudnnTensor& where, const CudnnTensor& x,
                        const CudnnTensor& b, const CudnnTensor& y) {
  Check(AddPointwise(CUDNN_POINTWISE_BINARY_SELECT, 0, CUDNN_DATA_FLOAT,
                     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_TDESC, where.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}}));
}

void CudnnGraph::Index(int64_t axis, const CudnnTensor& x,
                       const CudnnTensor& y) {
  Check(AddPointwise(CUDNN_POINTWISE_GEN_INDEX, axis, CUDNN_DATA_FLOAT,
                     {{CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x.descriptor},
                      {CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y.descriptor}}));
}

void CudnnGraph::Reduce(cudnnReduceTensorOp_t op, const CudnnTensor& x,
                        const CudnnTensor& y) {
  Check([&] {
    ASSIGN_OR_RETURN(
        CudnnDescriptor sum,
        CudnnDescriptor::Create(library_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR));
    RETURN_IF_ERROR(sum.Set(CUDNN_ATTR_REDUCTION_OPERATOR, op));
    RETURN_IF_ERROR(sum.Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT));
    RETURN_IF_ERROR(sum.Finalize());
    parts_.push_back(std::move(sum));
    return AddOperation(
        CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR,
        {{CUDNN_ATTR_OPERATION_REDUCTION_DESC, parts_.back().get()},
         {CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x.descriptor},
         {CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y.descriptor}});
  }());
}

void CudnnGraph::Reshape(const CudnnTensor& x, const CudnnTensor& y) {
  Check(AddOperation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR,
                     {{CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x.descriptor},
                      {CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y.descriptor}}));
}

absl::StatusOr<CudnnDescriptor> CudnnGraph::Finalized(
    const CudnnTarget& target) {
  RETURN_IF_ERROR(status_);
  ASSIGN_OR_RETURN(CudnnDescriptor graph,
                   CudnnDescriptor::Create(
                       library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
  RETURN_IF_ERROR(graph.SetAll<cudnnBackendDescriptor_t>(
      CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_));
  if (target.handle != nullptr) {
    RETURN_IF_ERROR(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, target.handle));
  }
  RETURN_IF_ERROR(graph.Finalize());
  return graph;
}

absl::StatusOr<std::vector<CudnnDescriptor>> CudnnGraph::Recommended(
    cudnnBackendDescriptor_t graph, const CudnnTarget& target) const {
  ASSIGN_OR_RETURN(
      CudnnDescriptor heuristics,
      CudnnDescriptor::Create(library_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
  RETURN_IF_ERROR(heuristics.Set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph));
  RETURN_IF_ERROR(
      heuristics.Set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A));
  if (target.handle == nullptr) {
    RETURN_IF_ERROR(
        heuristics.Set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, target.properties));
  }
  RETURN_IF_ERROR(heuristics.Finalize());
  ASSIGN_OR_RETURN(const int64_t count,
                   heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                  absl::Span<cudnnBackendDescriptor_t>()));
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> to;
  for (int64_t i = 0; i < count; ++i) {
    ASSIGN_OR_RETURN(
        CudnnDescriptor config,
        CudnnDescriptor::Create(library_, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    to.push_back(config.get());
    configs.push_back(std::move(config));
  }
  ASSIGN_OR_RETURN(
      const int64_t found,
      heuristics.Get(CUDNN_ATTR_ENGINEHEUR_RESULTS, absl::MakeSpan(to)));
  configs.erase(configs.begin() + found, configs.end());
  return configs;
}

absl::StatusOr<CudnnPlan> CudnnGraph::Plan(const CudnnTarget& target) && {
  ASSIGN_OR_RETURN(CudnnDescriptor graph, Finalized(target));
  ASSIGN_OR_RETURN(std::vector<CudnnDescriptor> configs,
                   Recommended(graph.get(), target));
  parts_.push_back(std::move(graph));
  absl::Status why = absl::NotFoundError("cuDNN has no kernels for this");
  for (CudnnDescriptor& config : configs) {
    const absl::StatusOr<bool> same_bits = Deterministic(library_, config);
    if (!same_bits.ok() || !*same_bits) continue;
    absl::StatusOr<CudnnDescriptor> plan = Finish(library_, config, target);
    if (!plan.ok()) {
      why = plan.status();
      continue;
    }
    int64_t bytes = 0;
    RETURN_IF_ERROR(plan->Get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                              absl::MakeSpan(&bytes, 1))
                        .status());
    parts_.push_back(std::move(config));
    return CudnnPlan{.plan = *std::move(plan),
                     .parts = std::move(parts_),
                     .workspace_bytes = bytes};
  }
  return why;
}

}  // namespace troupe::cuda
