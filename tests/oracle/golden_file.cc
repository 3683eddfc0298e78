#include "tests/oracle/golden_file.h"

#include <cstring>
#include <fstream>
#include <iterator>

#include "nlohmann/json.hpp"
#include "proto/base/check.h"

namespace troupe {
namespace {

template <typename T>
std::vector<double> Numbers(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return {values.begin(), values.end()};
}

std::vector<double> Numbers(const std::string& dtype,
                            const std::string& bytes) {
  if (dtype == "F32") return Numbers<float>(bytes);
  if (dtype == "F64") return Numbers<double>(bytes);
  CHECK_EQ(dtype, "I32");
  return Numbers<int32_t>(bytes);
}

}  // namespace

const std::vector<double>& GoldenFile::Get(const std::string& name) const {
  const auto found = tensors.find(name);
  CHECK(found != tensors.end()) << "no tensor " << name;
  return found->second;
}

double GoldenFile::Number(const std::string& name) const {
  const auto found = recipe.find(name);
  CHECK(found != recipe.end()) << "the recipe has no " << name;
  return found->second;
}

GoldenFile ReadGoldenFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  CHECK(file.good()) << path;
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  uint64_t header_bytes = 0;
  CHECK_GE(all.size(), sizeof(header_bytes));
  std::memcpy(&header_bytes, all.data(), sizeof(header_bytes));
  const auto header =
      nlohmann::json::parse(all.substr(sizeof(header_bytes), header_bytes));
  const size_t data = sizeof(header_bytes) + header_bytes;
  GoldenFile golden;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") {
      const std::string recipe = entry.at("recipe");
      golden.recipe =
          nlohmann::json::parse(recipe).get<std::map<std::string, double>>();
      golden.model = entry.at("model");
      golden.lora = entry.value("lora", "");
      golden.optimizer = entry.value("optimizer", "");
      const std::string freeze = entry.value("freeze", "[]");
      golden.freeze =
          nlohmann::json::parse(freeze).get<std::vector<std::string>>();
      continue;
    }
    const size_t begin = entry.at("data_offsets")[0];
    const size_t end = entry.at("data_offsets")[1];
    CHECK_LE(data + end, all.size()) << path;
    golden.tensors[name] =
        Numbers(entry.at("dtype"), all.substr(data + begin, end - begin));
  }
  return golden;
}

}  // namespace troupe
