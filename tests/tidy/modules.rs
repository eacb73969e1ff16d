//! The module tree of one crate, read from its sources: each module's file, children, items and imported names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::code;
use crate::tokens::{Token, tokens};

/// Index of a module in its tree.
pub(crate) type ModuleId = usize;

/// One module of a crate, inline modules included.
#[derive(Debug, Default)]
pub(crate) struct Module {
    /// The module around this one. The crate root has none.
    pub(crate) parent: Option<ModuleId>,
    /// The file with the module's code.
    pub(crate) file: PathBuf,
    /// Child modules by name.
    pub(crate) children: BTreeMap<String, ModuleId>,
    /// Names of the items that the module defines.
    pub(crate) items: BTreeSet<String>,
    /// Paths of `use` declarations by the name that they bring into scope.
    pub(crate) imports: BTreeMap<String, Vec<String>>,
    /// Paths of glob imports, without the star.
    pub(crate) globs: Vec<Vec<String>>,
    /// All other paths of at least two segments that the code names.
    pub(crate) paths: Vec<Vec<String>>,
}

/// The modules of one crate. Code that is compiled for tests only is left out.
pub(crate) struct ModuleTree {
    /// All modules, the crate root first.
    pub(crate) modules: Vec<Module>,
}

const ITEM_KEYWORDS: &[&str] = &["struct", "enum", "trait", "fn", "const", "static", "type", "union", "macro_rules"];

impl ModuleTree {
    /// Reads the crate with this root file.
    pub(crate) fn read(root: &Path) -> Self {
        let mut tree = Self { modules: vec![Module { file: root.to_owned(), ..Module::default() }] };
        let folder = root.parent().expect("a root file in a folder").to_owned();
        tree.read_file(0, root, &folder);
        tree
    }

    /// Reads a module's file. Its child modules are in `folder`.
    fn read_file(&mut self, id: ModuleId, file: &Path, folder: &Path) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let tokens = tokens(&code(&text));
        Reader { tree: self, tokens: &tokens, at: 0, folder: folder.to_owned() }.read(id);
    }

    fn add(&mut self, parent: ModuleId, name: &str, file: PathBuf) -> ModuleId {
        let id = self.modules.len();
        self.modules.push(Module { parent: Some(parent), file, ..Module::default() });
        self.modules[parent].children.insert(name.to_owned(), id);
        id
    }
}

/// Reads the modules of one file.
struct Reader<'a> {
    tree: &'a mut ModuleTree,
    tokens: &'a [Token],
    at: usize,
    folder: PathBuf,
}

impl Reader<'_> {
    /// Reads up to the brace that closes the module.
    fn read(&mut self, id: ModuleId) {
        let mut depth = 0_usize;
        let mut attributes: Vec<Token> = Vec::new();
        while let Some(token) = self.tokens.get(self.at) {
            let next = self.tokens.get(self.at + 1);
            match token {
                Token::Punct('{') => depth += 1,
                Token::Punct('}') if depth == 0 => return,
                Token::Punct('}') => depth -= 1,
                Token::Punct('#') if next == Some(&Token::Punct('[')) => {
                    attributes.extend(self.attribute());
                    continue;
                }
                Token::Word(word) if word == "mod" => {
                    self.module(id, &attributes);
                    attributes.clear();
                }
                Token::Word(word) if word == "use" => {
                    self.at += 1;
                    self.use_tree(id, &[]);
                }
                Token::Word(word) if ITEM_KEYWORDS.contains(&word.as_str()) => {
                    let names = self.tokens[self.at + 1..].iter().take(2).filter_map(Token::word);
                    self.tree.modules[id].items.extend(names.map(str::to_owned));
                }
                Token::Word(_) if next == Some(&Token::PathSeparator) => {
                    let path = self.path();
                    self.tree.modules[id].paths.push(path);
                    attributes.clear();
                    continue;
                }
                Token::Punct(';') => attributes.clear(),
                _ => {}
            }
            self.at += 1;
        }
    }

    /// The tokens of an attribute.
    fn attribute(&mut self) -> Vec<Token> {
        let begin = self.at;
        let mut depth = 0_usize;
        while let Some(token) = self.tokens.get(self.at) {
            self.at += 1;
            match token {
                Token::Punct('[') => depth += 1,
                Token::Punct(']') if depth == 1 => break,
                Token::Punct(']') => depth -= 1,
                _ => {}
            }
        }
        self.tokens[begin..self.at].to_vec()
    }

    /// Reads `mod name;` or `mod name { … }`.
    fn module(&mut self, parent: ModuleId, attributes: &[Token]) {
        let Some(name) = self.tokens.get(self.at + 1).and_then(Token::word).map(str::to_owned) else { return };
        let is_test = attributes
            .windows(3)
            .any(|part| part[0].is_word("cfg") && part[1] == Token::Punct('(') && part[2].is_word("test"));
        self.at += 2;
        if self.tokens.get(self.at) == Some(&Token::Punct('{')) {
            self.at += 1;
            let file = self.tree.modules[parent].file.clone();
            let id = self.tree.add(parent, &name, file);
            self.read(id);
            return;
        }
        if is_test {
            return;
        }
        let path = attributes.windows(3).find_map(|part| match part {
            [key, Token::Punct('='), Token::Text(path)] if key.is_word("path") => Some(path.clone()),
            _ => None,
        });
        let (file, folder) = self.child_file(&self.tree.modules[parent].file, &name, path);
        let id = self.tree.add(parent, &name, file.clone());
        self.tree.read_file(id, &file, &folder);
    }

    /// Returns the file of a child, and the folder of the child's own children. A `path` attribute is relative to the folder of
    /// the parent's file.
    fn child_file(&self, parent: &Path, name: &str, path: Option<String>) -> (PathBuf, PathBuf) {
        if let Some(path) = path {
            let file = normal(&parent.with_file_name(path));
            let folder = if file.ends_with("mod.rs") { file.clone() } else { file.with_extension("") };
            return (file, folder);
        }
        let folder = self.folder.join(name);
        let flat = self.folder.join(format!("{name}.rs"));
        (if flat.exists() { flat } else { folder.join("mod.rs") }, folder)
    }

    /// Reads a path such as `a::b::c`.
    fn path(&mut self) -> Vec<String> {
        let mut path = Vec::new();
        while let Some(word) = self.tokens.get(self.at).and_then(Token::word) {
            path.push(word.to_owned());
            self.at += 1;
            if self.tokens.get(self.at) != Some(&Token::PathSeparator) {
                break;
            }
            self.at += 1;
        }
        path
    }

    /// Reads one tree of a `use` declaration.
    fn use_tree(&mut self, id: ModuleId, prefix: &[String]) {
        if self.tokens.get(self.at) == Some(&Token::PathSeparator) {
            self.at += 1;
        }
        let mut path = prefix.to_vec();
        path.extend(self.path());
        match self.tokens.get(self.at) {
            Some(Token::Punct('{')) => {
                self.at += 1;
                while !matches!(self.tokens.get(self.at), None | Some(Token::Punct('}'))) {
                    self.use_tree(id, &path);
                    if self.tokens.get(self.at) == Some(&Token::Punct(',')) {
                        self.at += 1;
                    }
                }
                self.at += 1;
                return;
            }
            Some(Token::Punct('*')) => {
                self.at += 1;
                self.tree.modules[id].globs.push(path);
                return;
            }
            _ => {}
        }
        if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
            path.pop();
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if self.tokens.get(self.at).is_some_and(|token| token.is_word("as")) {
            let alias = self.tokens.get(self.at + 1).and_then(Token::word);
            name = alias.unwrap_or_default().into();
            self.at += 2;
        }
        if name == "_" {
            name = format!("_ {}", path.join("::"));
        }
        self.tree.modules[id].imports.insert(name, path);
    }
}

/// The path without its `..` parts.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        if part.as_os_str() == ".." {
            normal.pop();
        } else {
            normal.push(part);
        }
    }
    normal
}
