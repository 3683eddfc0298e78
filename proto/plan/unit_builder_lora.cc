// Adapters of linear layers (training.lora). A layer's LINEAR stays as it is,
// but for a mark, and a LOW_RANK behind it adds the products of its adapters.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/base/check.h"
#include "proto/plan/lora.h"
#include "proto/plan/operands.h"
#include "proto/plan/tensor_spec.h"
#include "proto/plan/unit_builder.h"

namespace troupe {
namespace {

// Sites of adapters' masks lie behind those of all masks of a model, which
// therefore drops the same values with and without adapters.
constexpr int64_t kFirstAdapterMask = int64_t{1} << 20;
constexpr int kAdapterMasksPerUnit = 64;

// What Hugging Face has as one layer: projections that lie within one tensor
// there have one A.
const std::string& LayerOf(const UnitBuilder::Projection& projection) {
  return projection.within.empty() ? projection.name : projection.within;
}

}  // namespace

std::vector<UnitBuilder::Adapter> UnitBuilder::AdaptersOf(
    const LinearArgs& args) const {
  const LoraSpec& lora = *options_.shape.lora;
  std::vector<Adapter> adapters;
  int section = 0;
  for (size_t p = 0; p < args.projections.size(); ++p) {
    const Projection& projection = args.projections[p];
    const int sections = projection.out.sections_size();
    const std::string& layer = LayerOf(projection);
    if (HasAdapter(lora, layer)) {
      if (adapters.empty() || adapters.back().layer != layer) {
        adapters.push_back({.layer = layer});
      }
      adapters.back().ups.push_back(
          {.projection = p, .section = section, .sections = sections});
    }
    section += sections;
  }
  return adapters;
}

int UnitBuilder::Adapted(const LinearArgs& args, int base) {
  // f32 is of logits of experts: routers have no adapters.
  if (options_.shape.lora == nullptr || args.f32) return base;
  const std::vector<Adapter> adapters = AdaptersOf(args);
  if (adapters.empty()) return base;
  table_.mutable_ops(table_.ops_size() - 1)
      ->mutable_linear()
      ->set_adapted(true);
  const LoraSpec& lora = *options_.shape.lora;
  const Dim rank = DimOf({{Dim::ADAPTER_RANK, lora.rank()}});
  Dim low_columns;
  for (size_t a = 0; a < adapters.size(); ++a) low_columns.MergeFrom(rank);
  const int y = Like(base, absl::StrCat(args.output, " adapted"));
  const int low =
      Tensor(absl::StrCat(args.output, " low"),
             {batch_, sequence_, low_columns}, options_.shape.dtype);
  Op& op = NewOp(Op::LOW_RANK);
  AddInput(op, "x", args.x);
  AddInput(op, "base", base);
  AddOutput(op, "y", y);
  AddOutput(op, "low", low);
  op.mutable_low_rank()->set_scale(LoraScale(lora));
  if (lora.dropout() > 0) {
    const int masked = Like(args.x, absl::StrCat(args.output, " masked"));
    AddOutput(op, "masked", masked);
    SetAdapterMask(op);
  }
  AddAdapterWeights(args, adapters, op);
  return y;
}

// A layer's sites follow from its place in the model, not from how many adapters
// a layer has: dense layers and layers of experts differ in that.
void UnitBuilder::SetAdapterMask(Op& op) {
  CHECK_LT(adapter_masks_, kAdapterMasksPerUnit);
  Op::Mask& mask = *op.mutable_mask();
  mask.set_probability(options_.shape.lora->dropout());
  mask.set_site(static_cast<int32_t>(
      kFirstAdapterMask +
      (options_.index - options_.layer) * kAdapterMasksPerUnit +
      adapter_masks_++));
  mask.set_sites_per_layer(kAdapterMasksPerUnit);
}

// A begins as PEFT's do, with the standard deviation of a uniform distribution
// over +-1 / sqrt(in); B with zeros, so that training starts from the model as
// it is.
void UnitBuilder::AddAdapterWeights(const LinearArgs& args,
                                    const std::vector<Adapter>& adapters,
                                    Op& op) {
  const Dim in = ColumnDimOf(table_.tensors(args.x));
  const Dim rank = DimOf({{Dim::ADAPTER_RANK, options_.shape.lora->rank()}});
  const double init_std = 1 / std::sqrt(3.0 * static_cast<double>(DimSize(in)));
  for (const Adapter& adapter : adapters) {
    op.add_parameters(AdapterWeight(absl::StrCat(adapter.layer, kLoraDown),
                                    {rank, in}, troupe::Parameter::NORMAL,
                                    init_std));
  }
  for (size_t a = 0; a < adapters.size(); ++a) {
    for (const AdapterColumns& up : adapters[a].ups) {
      const Projection& projection = args.projections[up.projection];
      const int weight =
          AdapterWeight(absl::StrCat(projection.name, kLoraUp),
                        {projection.out, rank}, troupe::Parameter::ZEROS, 0);
      SetPartOf(args, static_cast<int>(up.projection), kLoraUp, weight);
      op.add_parameters(weight);
      Op::LowRank::Columns& columns = *op.mutable_low_rank()->add_columns();
      columns.set_section(up.section);
      columns.set_sections(up.sections);
      columns.set_down(static_cast<int>(a));
    }
  }
}

}  // namespace troupe
