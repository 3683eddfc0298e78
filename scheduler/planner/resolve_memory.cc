#include "scheduler/planner/resolve_memory.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "scheduler/tiers/loss_chunks.h"
#include "scheduler/tiers/offload.h"
#include "scheduler/tiers/recompute.h"

namespace troupe {
namespace {

constexpr char kPath[] = "memory.recompute";
constexpr int kChunkMegabytesMax = 1 << 20;
constexpr int64_t kDeviceBytesMax = int64_t{1} << 50;
constexpr int64_t kLossChunkTokensMax = int64_t{1} << 40;

absl::Status CheckUnits(const ModelSpec& model, const RecomputeSpec& spec) {
  const int count = UnitCount(model);
  std::set<int> listed;
  for (const auto& [name, units] :
       {std::make_pair("units", &spec.units()),
        std::make_pair("selective_units", &spec.selective_units())}) {
    for (const int unit : *units) {
      if (unit < 0 || unit >= count) {
        return FieldError(
            absl::StrCat(kPath, ".", name),
            absl::StrCat("there is no unit ", unit,
                         ": 0 is the embedding, 1 to ", count - 2,
                         " are the blocks, ", count - 1, " is the head"));
      }
      if (!listed.insert(unit).second) {
        return FieldError(
            absl::StrCat(kPath, ".", name),
            absl::StrCat("unit ", unit, " is listed twice; list it once"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status ResolveTiers(MemorySpec& memory) {
  if (!memory.has_optimizer()) memory.set_optimizer("device");
  if (!memory.has_parameters()) memory.set_parameters("device");
  if (!memory.has_gradients()) memory.set_gradients("device");
  if (!memory.has_activations()) memory.set_activations("device");
  const std::vector<std::string> tiers = {"device", "host", "nvme"};
  RETURN_IF_ERROR(CheckName("memory.optimizer", memory.optimizer(), tiers));
  RETURN_IF_ERROR(CheckName("memory.parameters", memory.parameters(), tiers));
  RETURN_IF_ERROR(CheckName("memory.activations", memory.activations(), tiers));
  // Each micro-batch adds to gradients: a disk would be read and written for
  // each.
  return CheckName("memory.gradients", memory.gradients(), {"device", "host"});
}

absl::Status ResolveChunks(MemorySpec& memory) {
  if (!memory.has_chunk_megabytes()) {
    if (!memory.has_device_bytes()) return absl::OkStatus();
    return FieldError("memory.device_bytes",
                      "says how far chunks fill a device; set "
                      "memory.chunk_megabytes, or leave it out");
  }
  const std::string& chunk = memory.chunk_megabytes();
  double megabytes = 0;
  const bool number = absl::SimpleAtod(chunk, &megabytes) && megabytes > 0 &&
                      megabytes <= kChunkMegabytesMax;
  if (!number && chunk != "auto") {
    return FieldError("memory.chunk_megabytes",
                      absl::StrCat("\"", chunk,
                                   "\" is neither auto nor a number of "
                                   "megabytes above 0, up to ",
                                   kChunkMegabytesMax, "; use auto"));
  }
  if (!MayStayOnDevice(memory)) {
    return FieldError("memory.chunk_megabytes",
                      "is of parameters, gradients and activations that rest "
                      "below the device, and all rest there; leave it out");
  }
  if (!memory.has_device_bytes()) return absl::OkStatus();
  return CheckInteger("memory.device_bytes", memory.device_bytes(),
                      {.min = 0, .max = kDeviceBytesMax});
}

absl::Status CheckLossChunks(const ModelSpec& model, const MemorySpec& memory) {
  if (!memory.has_loss_chunk_tokens()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckInteger(kLossChunksField, memory.loss_chunk_tokens(),
                               {.min = 0, .max = kLossChunkTokensMax}));
  if (!IsSynthetic(model) || memory.loss_chunk_tokens() == 0) {
    return absl::OkStatus();
  }
  return FieldError(kLossChunksField,
                    "synthetic units compute no loss; leave it out");
}

}  // namespace

absl::Status ResolveMemory(const ModelSpec& model, MemorySpec& memory) {
  if (memory.has_mode()) {
    RETURN_IF_ERROR(CheckName("memory", memory.mode(), {"auto"}));
    MemorySpec given = memory;
    given.clear_mode();
    // What is open may come to rest where chunks are of use.
    if (!given.has_parameters() || !given.has_gradients() ||
        !given.has_activations()) {
      given.set_parameters("host");
    }
    return ResolveMemory(model, given);
  }
  RETURN_IF_ERROR(ResolveTiers(memory));
  RETURN_IF_ERROR(ResolveChunks(memory));
  RETURN_IF_ERROR(CheckLossChunks(model, memory));
  RecomputeSpec& spec = *memory.mutable_recompute();
  const bool lists = spec.units_size() + spec.selective_units_size() > 0;
  if (!spec.has_mode()) spec.set_mode(lists ? kRecomputeList : kRecomputeNone);
  RETURN_IF_ERROR(CheckName(kPath, spec.mode(), RecomputeModes()));
  const bool listed = spec.mode() == kRecomputeList;
  if (lists && !listed) {
    return FieldError(kPath, absl::StrCat("\"", spec.mode(),
                                          "\" is of all units, and some are "
                                          "listed too; use one or the other"));
  }
  if (IsSynthetic(model)) {
    if (spec.mode() == kRecomputeNone) return absl::OkStatus();
    return FieldError(kPath,
                      "synthetic units compute nothing that could be made "
                      "again; leave it out");
  }
  return CheckUnits(model, spec);
}

}  // namespace troupe
