#include "worker/service/datasheets.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"

namespace troupe {
namespace {

// In TFLOP/s. `words` are all in the name; the first row that matches counts.
struct Row {
  const char* words;
  double bf16;  // 0: it multiplies none on tensor cores
  double fp16;
  double f32;
};

// NVIDIA's datasheets of the named product, and for GeForce the appendix of the
// architecture's whitepaper; where a datasheet states rates with sparsity, half
// of them.
constexpr Row kRows[] = {
    {"b200", 2250, 2250, 75},          // HGX B200, an eighth
    {"gh200", 989, 989, 67},           // GH200 Grace Hopper Superchip
    {"h200 nvl", 835, 835, 60},        // H200
    {"h200", 989, 989, 67},            // H200
    {"h100 nvl", 835, 835, 60},        // H100
    {"h100 pcie", 756, 756, 51},       // H100
    {"h100", 989, 989, 67},            // H100, SXM
    {"h800 pcie", 756, 756, 51},       // H800
    {"h800", 989, 989, 67},            // H800, SXM
    {"h20", 148, 148, 44},             // H20
    {"a100", 312, 312, 19.5},          // A100
    {"a800", 312, 312, 19.5},          // A800
    {"a30", 165, 165, 10.3},           // A30
    {"a40", 149.7, 149.7, 37.4},       // A40
    {"a10", 125, 125, 31.2},           // A10
    {"l40s", 362, 362, 91.6},          // L40S
    {"l40", 181, 181, 90.5},           // L40
    {"l4", 121, 121, 30.3},            // L4
    {"v100 pcie", 0, 112, 14},         // V100
    {"v100 sxm2", 0, 125, 15.7},       // V100
    {"v100 sxm3", 0, 125, 15.7},       // V100
    {"t4", 0, 65, 8.1},                // T4
    {"rtx 4090", 165.2, 165.2, 82.6},  // Ada whitepaper, summed in f32
    {"rtx 3090", 71, 71, 35.6},        // GA102 whitepaper, summed in f32
};

std::vector<std::string> WordsOf(const std::string& text) {
  return absl::StrSplit(absl::AsciiStrToLower(text), absl::ByAnyChar(" -_"),
                        absl::SkipEmpty());
}

bool HasAll(const std::vector<std::string>& name, const char* words) {
  const std::vector<std::string> wanted = WordsOf(words);
  return std::all_of(
      wanted.begin(), wanted.end(), [&](const std::string& word) {
        return std::find(name.begin(), name.end(), word) != name.end();
      });
}

// Other chips of the same name, with fewer cores.
bool IsAnother(const std::vector<std::string>& name) {
  return std::any_of(name.begin(), name.end(), [](const std::string& word) {
    return word == "mig" || word == "laptop" || word == "ti" || word == "d" ||
           word == "max";
  });
}

void Add(ElementType dtype, double tflops, std::vector<DatasheetRate>& rates) {
  if (tflops == 0) return;
  DatasheetRate& rate = rates.emplace_back();
  rate.set_dtype(dtype);
  rate.set_flops_per_second(tflops * 1e12);
}

}  // namespace

std::vector<DatasheetRate> DatasheetOf(const std::string& gpu_name) {
  const std::vector<std::string> name = WordsOf(gpu_name);
  if (IsAnother(name)) return {};
  for (const Row& row : kRows) {
    if (!HasAll(name, row.words)) continue;
    std::vector<DatasheetRate> rates;
    Add(BF16, row.bf16, rates);
    Add(F16, row.fp16, rates);
    Add(F32, row.f32, rates);
    return rates;
  }
  return {};
}

}  // namespace troupe
