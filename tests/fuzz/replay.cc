// Runs a fuzz target on every file of a folder, once: what fuzzing found stays
// found, with no fuzzer needed. The last name printed is the input that failed.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  std::vector<std::filesystem::path> inputs;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    inputs.push_back(entry.path());
  }
  std::sort(inputs.begin(), inputs.end());
  for (const std::filesystem::path& input : inputs) {
    std::cout << input.filename().string() << std::endl;
    std::ostringstream bytes;
    bytes << std::ifstream(input, std::ios::binary).rdbuf();
    const std::string text = bytes.str();
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(text.data()),
                           text.size());
  }
  std::cout << inputs.size() << " inputs\n";
  return inputs.empty() ? 1 : 0;
}
