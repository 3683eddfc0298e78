#include "ops/permute.h"

#include <cstring>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

void CheckIndex(const char* what, int64_t index, int64_t count, int64_t at) {
  CHECK(index >= 0 && index < count)
      << what << " " << index << " at " << at << ", of " << count;
}

}  // namespace

// By counting, on one thread: two passes over 4 bytes for each row that experts
// compute.
void SortChoices(Device&, const SortChoicesArgs& args) {
  const int32_t* const choices = args.choices.data<int32_t>();
  int32_t* const sources = args.sources.data<int32_t>();
  int32_t* const places = args.places.data<int32_t>();
  int32_t* const offsets = args.offsets.data<int32_t>();
  const auto count = static_cast<int32_t>(args.choices.elements());
  const int64_t experts = args.offsets.elements() - 1;
  std::vector<int32_t> next(experts, 0);  // of an expert's rows
  for (int32_t i = 0; i < count; ++i) {
    CheckIndex("expert", choices[i], experts, i);
    ++next[choices[i]];
  }
  offsets[0] = 0;
  for (int64_t expert = 0; expert < experts; ++expert) {
    offsets[expert + 1] = offsets[expert] + next[expert];
    next[expert] = offsets[expert];
  }
  for (int32_t i = 0; i < count; ++i) {
    const int32_t place = next[choices[i]]++;
    sources[place] = i;
    places[i] = place;
  }
}

void GatherRows(Device& device, const GatherRowsArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int32_t* const sources = args.sources.data<int32_t>();
  const int64_t n = args.x.rows();
  const size_t bytes = args.y.columns() * DTypeBytes(args.y.dtype());
  const char* const x = static_cast<const char*>(args.x.raw());
  char* const y = static_cast<char*>(args.y.raw());
  cpu.ForRows(args.y.rows(), args.y.columns(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      CheckIndex("source", sources[row], n * args.choices, row);
      std::memcpy(y + row * bytes, x + sources[row] / args.choices * bytes,
                  bytes);
    }
  });
}

void SumRows(Device& device, const SumRowsArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t c = args.y.columns(), k = args.places.columns();
  const int64_t m = args.x.rows();
  const int32_t* const places = args.places.data<int32_t>();
  WithActivationType(args.y.dtype(), [&]<typename T>() {
    const ActivationLoops<T>& loops = cpu.loops<T>();
    const T* const x = args.x.data<T>();
    cpu.ForRows(args.y.rows(), k * c, [&](int64_t begin, int64_t end) {
      std::vector<float> sum(c);
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t j = 0; j < k; ++j) {
          const int64_t place = places[row * k + j];
          CheckIndex("place", place, m, row * k + j);
          if (j == 0) {
            loops.to_f32(x + place * c, sum.data(), c);
          } else {
            loops.add(x + place * c, sum.data(), c, 1.0f);
          }
        }
        if (args.residual.defined()) {
          loops.add(args.residual.data<T>() + row * c, sum.data(), c, 1.0f);
        }
        loops.from_f32(sum.data(), args.y.data<T>() + row * c, c);
      }
    });
  });
}

}  // namespace troupe::cpu
