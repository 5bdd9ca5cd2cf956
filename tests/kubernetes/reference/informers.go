package main

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/tools/cache"
)

// factory has informers of objects that never change. Handlers get all objects while they are added, so that the
// caches of plugins are complete at once and nothing runs in the background.
type factory struct {
	informers.SharedInformerFactory
	all map[reflect.Type]*informer
}

func newFactory() *factory {
	return &factory{all: map[reflect.Type]*informer{}}
}

func (f *factory) add(obj runtime.Object) error {
	return f.of(obj).GetIndexer().Add(obj)
}

func (f *factory) of(obj runtime.Object) *informer {
	kind := reflect.TypeOf(obj)
	if f.all[kind] == nil {
		index := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		f.all[kind] = &informer{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, index)}
	}
	return f.all[kind]
}

// InformerFor implements the interface by which the typed informers find their shared one.
func (f *factory) InformerFor(obj runtime.Object, _ internalinterfaces.NewInformerFunc) cache.SharedIndexInformer {
	return f.of(obj)
}

func (f *factory) Core() core.Interface { return core.New(f, "", nil) }

func (f *factory) Storage() storage.Interface { return storage.New(f, "", nil) }

func (f *factory) Resource() resource.Interface { return resource.New(f, "", nil) }

func (f *factory) Apps() apps.Interface { return apps.New(f, "", nil) }

// informer is one kind of object. Methods that are not here are never called.
type informer struct {
	cache.SharedIndexInformer
	indexer cache.Indexer
}

func (i *informer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, obj := range i.indexer.List() {
		handler.OnAdd(obj, true)
	}
	return registration{}, nil
}

func (i *informer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, _ time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

func (i *informer) AddIndexers(indexers cache.Indexers) error {
	for name := range indexers {
		if i.indexer.GetIndexers()[name] != nil {
			return fmt.Errorf("index %s exists", name)
		}
	}
	return i.indexer.AddIndexers(indexers)
}

func (i *informer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

func (i *informer) GetIndexer() cache.Indexer { return i.indexer }

func (i *informer) GetStore() cache.Store { return i.indexer }

func (i *informer) HasSynced() bool { return true }

type registration struct {
	cache.ResourceEventHandlerRegistration
}

func (registration) HasSynced() bool { return true }

func (registration) HasSyncedChecker() cache.DoneChecker { return done{} }

// done is a check that is complete.
type done struct{}

func (done) Name() string { return "objects that never change" }

func (done) Done() <-chan struct{} {
	closed := make(chan struct{})
	close(closed)
	return closed
}
