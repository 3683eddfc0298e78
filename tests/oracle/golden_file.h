// Reads a golden file whole: safetensors of f32, f64 and i32, with the model
// and the recipe in its metadata. Independent of storage/, which has tests of
// its own.
#ifndef TROUPE_TESTS_ORACLE_GOLDEN_FILE_H_
#define TROUPE_TESTS_ORACLE_GOLDEN_FILE_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace troupe {

struct GoldenFile {
  std::map<std::string, std::vector<double>> tensors;
  std::map<std::string, double> recipe;
  std::string model;                // a ModelSpec in JSON
  std::vector<std::string> freeze;  // patterns of names
  std::string lora;  // a resolved LoraSpec in JSON, where adapters are trained
  std::string optimizer;  // a resolved OptimizerSpec in JSON, where it has
                          // groups; else empty

  // CHECKs that they are there.
  const std::vector<double>& Get(const std::string& name) const;
  double Number(const std::string& name) const;
};

// CHECKs that the file is there and well formed.
GoldenFile ReadGoldenFile(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_TESTS_ORACLE_GOLDEN_FILE_H_
