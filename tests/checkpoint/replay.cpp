// The model of a disk: for each file the bytes and the flushed bytes, for each folder the entries and the flushed ones.
#include "tests/checkpoint/replay.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

namespace trireme::trace {
namespace {

namespace fs = std::filesystem;
using Kind = Operation::Kind;

}  // namespace

Disk::Disk(fs::path folder) : folder_(std::move(folder)), nodes_(1) { nodes_[0].folder = true; }

std::size_t Disk::find(const fs::path& path) const {
  std::size_t node = 0;
  for (const fs::path& name : path.lexically_relative(folder_)) {
    if (name == "." || name.empty()) continue;
    const auto entry = nodes_[node].entries.find(name.string());
    if (entry == nodes_[node].entries.end()) throw std::runtime_error("no such path on the model: " + path.string());
    node = entry->second;
  }
  return node;
}

Disk::Node& Disk::parent_of(const fs::path& path) { return nodes_[find(path.parent_path())]; }

void Disk::apply(const Operation& operation, bool flushed) {
  const std::string name = operation.path.filename().string();
  switch (operation.kind) {
    case Kind::mark: return;
    case Kind::open: {
      if (operation.created) {
        const std::size_t node = nodes_.size();
        nodes_.emplace_back();
        parent_of(operation.path).entries[name] = node;
      }
      const std::size_t node = find(operation.path);
      if (operation.truncated) nodes_[node].bytes.clear();
      open_[operation.fd] = node;
      return;
    }
    case Kind::close: open_.erase(operation.fd); return;
    case Kind::write: {
      std::string& bytes = nodes_[open_.at(operation.fd)].bytes;
      bytes.resize(std::max<std::size_t>(bytes.size(), operation.offset + operation.bytes.size()));
      bytes.replace(operation.offset, operation.bytes.size(), operation.bytes);
      return;
    }
    case Kind::resize: nodes_[open_.at(operation.fd)].bytes.resize(operation.offset); return;
    case Kind::sync: {
      if (!flushed) return;
      Node& node = nodes_[open_.at(operation.fd)];
      node.flushed_bytes = node.bytes;
      node.flushed_entries = node.entries;
      return;
    }
    case Kind::rename: {
      const std::size_t node = find(operation.path);
      parent_of(operation.path).entries.erase(name);
      parent_of(operation.target).entries[operation.target.filename().string()] = node;
      return;
    }
    case Kind::make: {
      const std::size_t node = nodes_.size();
      nodes_.emplace_back().folder = true;
      parent_of(operation.path).entries[name] = node;
      return;
    }
    case Kind::remove: parent_of(operation.path).entries.erase(name); return;
  }
}

void Disk::collect(std::size_t number, const std::string& prefix, const Survival& survival, Tree& tree) const {
  const Node& node = nodes_[number];
  if (!node.folder) {
    using Files = Survival::Files;
    const bool kept = survival.files == Files::all || (survival.files == Files::even && number % 2 == 0) ||
                      (survival.files == Files::odd && number % 2 == 1);
    tree[prefix] = kept ? node.bytes : node.flushed_bytes;
    return;
  }
  if (number != 0) tree[prefix + "/"] = "";
  const bool kept = number == 0 ? survival.top_entries : survival.lower_entries;
  for (const auto& [name, child] : kept ? node.entries : node.flushed_entries) {
    collect(child, number == 0 ? name : prefix + "/" + name, survival, tree);
  }
}

Tree Disk::after_crash(const Survival& survival) const {
  Tree tree;
  collect(0, "", survival, tree);
  return tree;
}

void write_tree(const Tree& tree, const fs::path& folder) {
  for (const auto& [path, bytes] : tree) {  // in order: a folder comes before what is in it
    if (path.back() == '/') {
      fs::create_directories(folder / path.substr(0, path.size() - 1));
    } else {
      std::ofstream(folder / path, std::ios::binary) << bytes;
    }
  }
}

Tree read_tree(const fs::path& folder) {
  Tree tree;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    const std::string path = entry.path().lexically_relative(folder).string();
    if (entry.is_directory()) {
      tree[path + "/"] = "";
    } else {
      std::ostringstream bytes;
      bytes << std::ifstream(entry.path(), std::ios::binary).rdbuf();
      tree[path] = bytes.str();
    }
  }
  return tree;
}

}  // namespace trireme::trace
