//! Type-erased arguments of plugins, as stored in a configuration.

use std::any::Any;
use std::fmt;

use super::gates::FeatureGates;
use super::plugin_args::{PluginArgs, ReadArgsResult, WrittenArgs};
use crate::apimachinery::{FieldErrors, FieldPath};

/// The arguments of one plugin in a configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AnyArgs {
    /// No arguments are given, and the plugin has no type of arguments.
    #[default]
    None,
    /// Arguments as written, for a plugin without a type of arguments.
    Raw(serde_json::Value),
    /// Arguments decoded into the plugin's type, with all defaults.
    Typed(TypedArgs),
}

/// Arguments of a type that is known only at run time.
pub struct TypedArgs(Box<dyn ErasedArgs>);

/// Runtime description of a type of arguments.
#[derive(Clone, Copy)]
pub struct ArgsType {
    kind: &'static str,
    validated_by_factory: bool,
    default: fn() -> TypedArgs,
    read: fn(&WrittenArgs<'_>) -> ReadArgsResult<TypedArgs>,
    matches: fn(&TypedArgs) -> bool,
}

/// The methods of [`PluginArgs`] that can be called on a trait object.
trait ErasedArgs: Any + fmt::Debug + Send + Sync {
    fn kind(&self) -> &'static str;
    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error>;
    fn set_defaults(&mut self, gates: &FeatureGates);
    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors);
    fn cloned(&self) -> TypedArgs;
    fn equals(&self, other: &dyn ErasedArgs) -> bool;
}

impl<A: PluginArgs> ErasedArgs for A {
    fn kind(&self) -> &'static str {
        A::KIND
    }

    fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }

    fn set_defaults(&mut self, gates: &FeatureGates) {
        PluginArgs::set_defaults(self, gates);
    }

    fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {
        PluginArgs::validate(self, path, gates, errors);
    }

    fn cloned(&self) -> TypedArgs {
        TypedArgs::new(self.clone())
    }

    fn equals(&self, other: &dyn ErasedArgs) -> bool {
        (other as &dyn Any).downcast_ref::<A>() == Some(self)
    }
}

impl AnyArgs {
    /// The arguments' kind in messages and files, such as `NodeResourcesFitArgs`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Raw(_) => "raw",
            Self::Typed(args) => args.kind(),
        }
    }

    /// The arguments as JSON, without apiVersion and kind.
    pub fn to_json(&self) -> Result<serde_json::Value, serde_json::Error> {
        match self {
            Self::None => Ok(serde_json::Value::Null),
            Self::Raw(value) => Ok(value.clone()),
            Self::Typed(args) => args.0.to_json(),
        }
    }

    /// The arguments, if they are of type `A`.
    pub fn get<A: PluginArgs>(&self) -> Option<&A> {
        match self {
            Self::Typed(args) => (&*args.0 as &dyn Any).downcast_ref(),
            Self::None | Self::Raw(_) => None,
        }
    }

    /// The arguments as a mutable reference, if they are of type `A`.
    pub fn get_mut<A: PluginArgs>(&mut self) -> Option<&mut A> {
        match self {
            Self::Typed(args) => (&mut *args.0 as &mut dyn Any).downcast_mut(),
            Self::None | Self::Raw(_) => None,
        }
    }
}

impl<A: PluginArgs> From<A> for AnyArgs {
    fn from(args: A) -> Self {
        Self::Typed(TypedArgs::new(args))
    }
}

impl TypedArgs {
    fn new<A: PluginArgs>(args: A) -> Self {
        Self(Box::new(args))
    }

    /// The arguments' kind in messages and files.
    pub fn kind(&self) -> &'static str {
        self.0.kind()
    }

    /// Fills in the defaults that depend on feature gates or on other fields.
    pub(super) fn set_defaults(&mut self, gates: &FeatureGates) {
        self.0.set_defaults(gates);
    }

    /// Adds an error for each invalid value.
    pub(super) fn validate(&self, path: &FieldPath, gates: &FeatureGates, errors: &mut FieldErrors) {
        self.0.validate(path, gates, errors);
    }
}

impl Clone for TypedArgs {
    fn clone(&self) -> Self {
        self.0.cloned()
    }
}

impl fmt::Debug for TypedArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl PartialEq for TypedArgs {
    fn eq(&self, other: &Self) -> bool {
        self.0.equals(&*other.0)
    }
}

impl ArgsType {
    /// Describes the type of arguments `A`.
    pub fn of<A: PluginArgs>() -> Self {
        Self {
            kind: A::KIND,
            validated_by_factory: A::VALIDATED_BY_FACTORY,
            default: || TypedArgs::new(A::default()),
            read: |written| A::read_args(written).map(|(args, faults)| (TypedArgs::new(args), faults)),
            matches: |args| (&*args.0 as &dyn Any).is::<A>(),
        }
    }

    /// The kind of these arguments in files.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Whether only the plugin's factory validates these arguments.
    pub(super) fn validated_by_factory(&self) -> bool {
        self.validated_by_factory
    }

    /// The default arguments, for a plugin that is given none.
    pub(super) fn default_args(&self, gates: &FeatureGates) -> TypedArgs {
        let mut args = (self.default)();
        args.set_defaults(gates);
        args
    }

    /// Decodes arguments into this type.
    pub(super) fn read(&self, written: &WrittenArgs<'_>) -> ReadArgsResult<TypedArgs> {
        (self.read)(written)
    }

    /// Whether `args` are of this type.
    pub(super) fn matches(&self, args: &TypedArgs) -> bool {
        (self.matches)(args)
    }
}

impl fmt::Debug for ArgsType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ArgsType({})", self.kind)
    }
}
