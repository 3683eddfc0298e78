#include "scheduler/passes/named_buffers.h"

#include <algorithm>
#include <vector>

#include "proto/plan/buffer_kind.h"
#include "proto/plan/part_state.h"
#include "scheduler/passes/buffer_bytes.h"
#include "scheduler/tiers/offload.h"

namespace troupe {

int NamedBuffers::Index(const BufferName& name) {
  const auto [found, is_new] = indices_.try_emplace(name, kNone);
  if (!is_new) return found->second;
  const auto& [value, offset] = name;
  const auto& [kind, unit, micro_batch, output] = value;
  const int64_t bytes = BufferBytes(plan_, role_, kind, unit, output);
  if (bytes == 0) return kNone;
  Buffer& buffer = *program_.add_buffers();
  buffer.set_kind(kind);
  if (unit != kNone) buffer.set_unit(unit);
  if (micro_batch != kNone && kind != Buffer::UNSHARDED_PARAMETERS) {
    buffer.set_micro_batch(micro_batch);
  }
  buffer.set_output(output);
  buffer.set_bytes(bytes);
  const bool flat = unit != kNone && BytesOfFlat(plan_.units(unit), kind) > 0;
  const Tier tier = flat ? TierOfFlat(plan_.units(unit), kind)
                         : RestsIn(plan_.job().memory(), kind);
  if (tier != DEVICE) buffer.set_tier(tier);
  buffer.set_slice(RestsInSlices(plan_, role_, kind, unit));
  const bool trains =
      program_.kind() == Program::TRAIN || program_.kind() == Program::FILL;
  buffer.set_carried(trains && carried_.count(value) > 0);
  if (OutlivesProgram(buffer)) buffer.set_copy_offset(offset);
  return found->second = program_.buffers_size() - 1;
}

std::set<Value> NamedBuffers::AtSeveralOffsets() const {
  std::vector<Value> values;
  for (const auto& [name, index] : indices_) values.push_back(name.first);
  std::sort(values.begin(), values.end());
  std::set<Value> several;
  for (size_t i = 1; i < values.size(); ++i) {
    if (values[i] == values[i - 1]) several.insert(values[i]);
  }
  return several;
}

}  // namespace troupe
